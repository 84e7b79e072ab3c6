#pragma once

#include <string>

#include <gtest/gtest.h>

#include "theseus/base/error.h"

namespace theseus::tests {

// The message of the E that `body` throws; without one the test fails and the message is empty.
template <class E = InputError, class Body>
std::string error_of(Body&& body) {
  try {
    body();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another kind of error: " << error.what();
    return "";
  }
  ADD_FAILURE() << "no error";
  return "";
}

// Asserts that `message` holds each of the parts.
template <class... Parts>
void expect_parts(const std::string& message, const Parts&... parts) {
  for (const std::string& part : {std::string(parts)...}) {
    EXPECT_NE(message.find(part), std::string::npos) << "'" << part << "' is not in: " << message;
  }
}

}  // namespace theseus::tests
