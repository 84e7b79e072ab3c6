#include "theseus/cli/suggested_option.h"

#include <vector>

#include <fmt/format.h>

#include "theseus/machine/suggest.h"

namespace theseus::cli {

std::string suggested_option(const CLI::App& command, const std::string& given) {
  std::vector<std::string> known;
  for (const auto* candidate : command.get_options()) {
    for (const auto& spelling : candidate->get_lnames()) {
      known.push_back("--" + spelling);
    }
  }
  const auto near = machine::closest(given.substr(0, given.find('=')), known);
  return near.empty() ? "" : "; did you mean " + near + "?";
}

std::string parse_error_text(
    const CLI::App& command, const std::string& name, const CLI::ParseError& error) {
  const auto rest = command.remaining(/*recurse=*/true);
  if (rest.empty()) {
    return error.what();
  }
  const bool option = rest.front().starts_with("-");
  return fmt::format(
      "{} takes no {} '{}'{}", name, option ? "option" : "argument", rest.front(),
      option ? suggested_option(command, rest.front()) : "");
}

}  // namespace theseus::cli
