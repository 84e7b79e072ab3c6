#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>

namespace theseus {

// Base of everything this library throws. Each layer the error passes through may say what it was
// doing; what() puts the failure first, then the trail.
class Error : public std::runtime_error {
 public:
  explicit Error(const std::string& message);

  void add_context(std::string_view doing);
  const char* what() const noexcept override { return full_.c_str(); }

 private:
  std::string full_;
};

// The caller's files, recipe or arguments are wrong. Exit status 2.
class InputError : public Error {
  using Error::Error;
};

// The inputs are valid but there is no trustworthy number: non-finite statistics, a factorisation
// that did not converge, a golden comparison that failed. Exit status 3.
class NumericError : public Error {
  using Error::Error;
};

// This library is wrong. Exit status 4.
class InternalError : public Error {
  using Error::Error;
};

// Throws E with the concatenated parts unless `holds`. The parts are evaluated either way: pass
// names and sizes, never anything that waits for the device.
template <class E = InputError, class... Parts>
void require(bool holds, const Parts&... message) {
  if (!holds) {
    throw E(c10::str(message...));
  }
}

// Rethrows what is being handled as one of ours: out of memory and the operating system's refusals are
// the caller's to mend (InputError), any other libtorch or standard exception is an InternalError.
// libtorch's stack frames are left out. Only to be called while an exception is being handled.
[[noreturn]] void throw_translated(std::string_view doing);

// Runs `body`; an Error leaving it gains the line "while <doing>" (none when `doing` is empty);
// anything else is translated, so callers have one hierarchy to catch.
template <class Body>
decltype(auto) with_context(std::string_view doing, Body&& body) {
  try {
    return std::forward<Body>(body)();
  } catch (const std::exception&) {
    throw_translated(doing);
  }
}

}  // namespace theseus
