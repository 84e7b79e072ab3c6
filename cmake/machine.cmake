# theseus_machine: theseus/machine/, with what it must know of the libtorch that was found.
include(CheckCXXSourceCompiles)

# pip's libtorch has MKL in it; Debian's takes the system's BLAS.
get_target_property(torch_cpu torch_cpu LOCATION)
set(CMAKE_REQUIRED_LIBRARIES ${torch_cpu})
set(CMAKE_REQUIRED_LINK_OPTIONS -Wl,--allow-shlib-undefined)
check_cxx_source_compiles(
  "extern \"C\" void MKL_Get_Version_String(char*, int); int main() { char t[200]; MKL_Get_Version_String(t, 200); }"
  THESEUS_TORCH_HAS_MKL)
unset(CMAKE_REQUIRED_LIBRARIES)
unset(CMAKE_REQUIRED_LINK_OPTIONS)
# Only one with OpenMP: threads of its own would fight with libtorch's.
find_library(THESEUS_OPENBLAS NAMES libopenblas.so.0 PATH_SUFFIXES openblas-openmp)
if(NOT THESEUS_OPENBLAS MATCHES "openmp")
  set(THESEUS_OPENBLAS "")
endif()
string(REGEX MATCH "^[0-9]+" torch_major "${Torch_VERSION}")

file(GLOB machine_sources CONFIGURE_DEPENDS theseus/machine/*.cpp)
add_library(theseus_machine STATIC ${machine_sources})
target_include_directories(theseus_machine PUBLIC
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
# libtorch's C++ ABI, since libtheseus and the launcher both link this.
target_compile_options(theseus_machine PUBLIC ${TORCH_CXX_FLAGS})
target_compile_definitions(theseus_machine PRIVATE
  THESEUS_TORCH_MAJOR=${torch_major} THESEUS_MKL=$<BOOL:${THESEUS_TORCH_HAS_MKL}>
  THESEUS_OPENBLAS="${THESEUS_OPENBLAS}")
target_link_libraries(theseus_machine PRIVATE $<BUILD_INTERFACE:theseus_options>)
