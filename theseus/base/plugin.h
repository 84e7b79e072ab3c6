#pragma once

#include <span>
#include <string>
#include <string_view>

#include "theseus/base/error.h"

namespace theseus {

// One row of a plugin table. The name is the plugin's file name without .cpp; the command line,
// reports and tests use the same word.
template <class T>
struct Plugin {
  std::string_view name;
  const T* object;
};

// Throws InputError naming every known plugin when `name` is not among them. `kind` is the word for
// the message, such as "model family".
template <class T>
const T& find_plugin(
    std::span<const Plugin<T>> table, std::string_view kind, std::string_view name) {
  std::string known;
  for (const Plugin<T>& plugin : table) {
    if (plugin.name == name) {
      return *plugin.object;
    }
    known.append(" ").append(plugin.name);
  }
  throw InputError(c10::str("unknown ", kind, " '", name, "'; this build has:", known));
}

}  // namespace theseus
