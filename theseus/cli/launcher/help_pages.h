#pragma once

#include <span>
#include <string_view>

namespace theseus::cli::launcher {

// What `theseus COMMAND --help` prints. The build writes the table: it asks the program for its pages.
struct HelpPage {
  std::string_view command;  // empty: of the program itself
  std::string_view text;
};

std::span<const HelpPage> help_pages();

}  // namespace theseus::cli::launcher
