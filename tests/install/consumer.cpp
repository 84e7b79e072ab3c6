#include <iostream>

#include "theseus/base/error.h"
#include "theseus/base/json.h"

int main() {
  const auto config = theseus::Json::parse(R"({"hidden_size": "wide"})", "config.json");
  try {
    return static_cast<int>(config.integer("hidden_size"));
  } catch (const theseus::InputError& error) {
    std::cout << error.what() << '\n';
  }
  return 0;
}
