// clang instantiates C++20's constexpr std::vector<IValue> as soon as libtorch's List.h mentions it,
// when IValue is not complete yet. Entering through ivalue.h, which includes List.h itself at the
// right place, completes it first; hence no include guard here. CMakeLists.txt puts this directory
// in front of libtorch's when clang compiles.
#include <ATen/core/ivalue.h>
#include_next <ATen/core/List.h>
