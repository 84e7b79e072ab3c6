# cmake --install: the binary, libtheseus.a, the headers, and a package for find_package(theseus).
include(CMakePackageConfigHelpers)

set(package_directory ${CMAKE_INSTALL_LIBDIR}/cmake/theseus)
install(TARGETS theseus theseus_machine EXPORT theseus ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET theseus_cli)
  install(TARGETS theseus_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(TARGETS theseus_program RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR})
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/theseus DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h" PATTERN cli EXCLUDE)
install(EXPORT theseus NAMESPACE theseus:: FILE theseusTargets.cmake
  DESTINATION ${package_directory})

configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/cmake/theseusConfig.cmake.in
  ${PROJECT_BINARY_DIR}/package/theseusConfig.cmake
  INSTALL_DESTINATION ${package_directory})
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/package/theseusConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/package/theseusConfig.cmake
  ${PROJECT_BINARY_DIR}/package/theseusConfigVersion.cmake
  DESTINATION ${package_directory})
