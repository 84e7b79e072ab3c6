# theseus_plugins(<target> <stage> <kind> <Type> <header>)
#
# Every .cpp in theseus/<stage>/<kind>/ is one plugin: foo.cpp must define
#   const Type& theseus::<stage>::<kind>::foo();
# and becomes the row {"foo", &foo()} of
#   std::span<const Plugin<Type>> theseus::<stage>::all_<kind>();
# The table is written at configure time: there is no list to edit, and no
# static initialiser for the linker to drop from the static library.
function(theseus_plugins target stage kind type header)
  file(GLOB files CONFIGURE_DEPENDS
    ${PROJECT_SOURCE_DIR}/theseus/${stage}/${kind}/*.cpp)
  list(SORT files)
  if(NOT files)
    return()
  endif()
  set(declarations "")
  set(rows "")
  foreach(file IN LISTS files)
    get_filename_component(name ${file} NAME_WE)
    string(APPEND declarations "const ${type}& ${name}();\n")
    string(APPEND rows "      {\"${name}\", &${kind}::${name}()},\n")
  endforeach()
  set(table ${PROJECT_BINARY_DIR}/generated/${stage}_${kind}.cpp)
  file(CONFIGURE OUTPUT ${table} @ONLY CONTENT
"#include \"theseus/@stage@/@header@\"

namespace theseus::@stage@ {
namespace @kind@ {
@declarations@}

std::span<const Plugin<@type@>> all_@kind@() {
  static const Plugin<@type@> table[] = {
@rows@  };
  return table;
}
}  // namespace theseus::@stage@
")
  target_sources(${target} PRIVATE ${table})
  set_source_files_properties(${files} PROPERTIES THESEUS_PLUGIN ${stage}_${kind})
endfunction()
