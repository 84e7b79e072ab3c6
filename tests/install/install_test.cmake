# Installs `build` into the build tree, then builds and runs the project beside this file against it.
set(work ${build}/install_consumer)
file(REMOVE_RECURSE ${work})

function(step)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\nfailed (${status}):\n${text}")
  endif()
  set(text "${text}" PARENT_SCOPE)
endfunction()

set(flags "")
if(sanitize)
  set(flags "-fsanitize=${sanitize}")
endif()
step(${CMAKE_COMMAND} --install ${build} --prefix ${work}/prefix)
step(${CMAKE_COMMAND} -E env CMAKE_PREFIX_PATH=${work}/prefix:${prefix_path}
  ${CMAKE_COMMAND} -G Ninja -S ${CMAKE_CURRENT_LIST_DIR} -B ${work}/build
  -D CMAKE_CXX_COMPILER=${compiler} -D CMAKE_BUILD_TYPE=${build_type} -D version=${version}
  -D CMAKE_CXX_FLAGS=${flags})
step(${CMAKE_COMMAND} --build ${work}/build)
step(${work}/build/consumer)
if(NOT text MATCHES "config.json: hidden_size: expected an integer")
  message(FATAL_ERROR "the consumer said:\n${text}")
endif()

# What is installed must not remember where it was built.
file(GLOB_RECURSE package_files ${work}/prefix/*.cmake)
foreach(file IN LISTS package_files)
  file(READ ${file} text)
  if(text MATCHES "${build}" OR text MATCHES "Werror")
    message(FATAL_ERROR "${file} names the build tree or carries our warnings")
  endif()
endforeach()
