// The program that users start. libtorch's libraries choose their kernels when they are loaded, from the
// environment, and take half a second to load. So this one links none of them: it answers what needs no
// model, prepares the environment, and becomes the program that does the work.

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <unistd.h>
#include <vector>

#include "theseus/cli/launcher/help_pages.h"
#include "theseus/machine/environment.h"
#include "theseus/machine/suggest.h"

namespace theseus::cli::launcher {
namespace {

constexpr int kDone = 0, kYourInput = 2, kOurBug = 4;  // as in cli/command.h
constexpr std::string_view kOldForward = "verify";     // see cli/old_words.h

const HelpPage* find_page(std::string_view command) {
  for (const auto& page : help_pages()) {
    if (page.command == command) {
      return &page;
    }
  }
  return nullptr;
}

int print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) {
    return kDone;
  }
  std::fprintf(stderr, "error: cannot write to standard output: %s\n", std::strerror(errno));
  return kYourInput;
}

// As JSON writes a text.
std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char letter : text) {
    result += letter == '"' || letter == '\\' ? std::string("\\") + letter : std::string(1, letter);
  }
  return result + "\"";
}

int refuse_unknown(const std::string& word, bool json) {
  std::vector<std::string> commands;
  std::string list;
  for (const auto& page : help_pages()) {
    if (!page.command.empty()) {
      commands.emplace_back(page.command);
      list.append(" ").append(page.command);
    }
  }
  std::string shown;
  for (const unsigned char letter : word) {
    shown += letter < ' ' || letter > '~' ? '?' : static_cast<char>(letter);
  }
  const auto near = machine::closest(word, commands);
  const auto message = "there is no command '" + shown + "'" +
                       (near.empty() ? "" : "; did you mean '" + near + "'?") +
                       "; commands:" + list;
  std::fprintf(stderr, "error: %s\n", message.c_str());
  if (json) {
    print("{\n  \"error\": " + quoted(message) + ",\n  \"exit_status\": 2\n}\n");
  }
  return kYourInput;
}

bool asks_for_help(std::string_view word) {
  return word == "--help" || word == "-h";
}

// Returns where the real program lies: in libexec/ beside this file in the build tree, and in PREFIX/libexec/ once
// both are installed.
std::filesystem::path program_path() {
  std::error_code error;
  const auto here = std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  const auto installed = here.parent_path() / THESEUS_LIBEXEC / "theseus-program";
  const auto built = here / "libexec" / "theseus-program";
  return std::filesystem::exists(built, error) ? built : installed;
}

int start(char** argv) {
  machine::set_missing();
  const auto program = program_path();
  ::execv(program.c_str(), argv);
  std::fprintf(
      stderr, "error: cannot start %s: %s; please build or install theseus anew\n", program.c_str(),
      std::strerror(errno));
  return kOurBug;
}

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.empty()) {
    std::fputs(std::string(find_page("")->text).c_str(), stderr);
    return kYourInput;
  }
  if (words[0] == "--version") {
    return print("theseus " THESEUS_VERSION "\n");
  }
  if (asks_for_help(words[0]) || (words[0] == "help" && words.size() == 1)) {
    return print(find_page("")->text);
  }
  const bool help = words[0] == "help";
  const auto& command = words[help ? 1 : 0];
  const auto* page = find_page(command == kOldForward ? "forward" : command);
  if (page == nullptr && command[0] != '-') {
    return refuse_unknown(command, std::find(words.begin(), words.end(), "--json") != words.end());
  }
  for (size_t i = 1; i < words.size() && page != nullptr; ++i) {
    if (help || asks_for_help(words[i])) {
      return print(page->text);
    }
  }
  return start(argv);
}

}  // namespace
}  // namespace theseus::cli::launcher

int main(int argc, char** argv) {
  return theseus::cli::launcher::main(argc, argv);
}
