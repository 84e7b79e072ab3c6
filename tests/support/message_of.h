#pragma once

#include <string>

#include "theseus/base/error.h"

namespace theseus::tests {

// What the E that leaves `body` says. Other exceptions pass through.
template <class E = InputError, class Body>
std::string message_of(const Body& body) {
  try {
    body();
  } catch (const E& error) {
    return error.what();
  }
  return "nothing was thrown";
}

}  // namespace theseus::tests
