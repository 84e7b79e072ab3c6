#include "theseus/base/error.h"

#include <new>
#include <system_error>

namespace theseus {
namespace {

template <class E>
[[noreturn]] void throw_with_context(const std::string& message, std::string_view doing) {
  E error(message);
  if (!doing.empty()) {
    error.add_context(doing);
  }
  throw error;
}

}  // namespace

Error::Error(const std::string& message) : std::runtime_error(message), full_(message) {}

void Error::add_context(std::string_view doing) {
  full_.append("\n  while ").append(doing);
}

void throw_translated(std::string_view doing) {
  try {
    throw;
  } catch (Error& error) {
    if (!doing.empty()) {
      error.add_context(doing);
    }
    throw;
  } catch (const std::bad_alloc&) {
    throw_with_context<InputError>("out of memory", doing);
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    const bool memory = text.find("out of memory") != std::string::npos ||
                        text.find("can't allocate memory") != std::string::npos;
    if (memory) {
      throw_with_context<InputError>("out of memory: " + text, doing);
    }
    throw_with_context<InternalError>(text, doing);
  } catch (const std::system_error& error) {
    throw_with_context<InputError>(error.what(), doing);
  } catch (const std::exception& error) {
    throw_with_context<InternalError>(error.what(), doing);
  }
}

}  // namespace theseus
