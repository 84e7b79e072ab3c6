// Read by clang-tidy before every source, never compiled into anything.
//
// In C++20 libstdc++ makes std::vector constexpr, and clang then instantiates its members where
// libtorch 1.13 has only declared the element type (c10::IValue): no source with <ATen/ATen.h> would
// parse. g++ waits. Here vector is read as it was before C++20; the one function that another header
// has already declared constexpr gets another name.
#pragma once
#include <string>
#ifdef __GLIBCXX__
#undef _GLIBCXX20_CONSTEXPR
#define _GLIBCXX20_CONSTEXPR
#define __fill_a1 __fill_a1_of_bits
#include <vector>
#undef __fill_a1
#undef _GLIBCXX20_CONSTEXPR
#define _GLIBCXX20_CONSTEXPR constexpr
#endif
