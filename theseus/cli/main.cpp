#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <sched.h>
#include <string>
#include <system_error>
#include <vector>

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/cli/command.h"
#include "theseus/cli/interrupt.h"
#include "theseus/cli/job_command.h"
#include "theseus/cli/old_words.h"
#include "theseus/cli/suggested_option.h"
#include "theseus/machine/environment.h"

namespace theseus::cli {
namespace {

bool json_wanted = false;  // whether --json is among the arguments

// Every failure comes through here: words for people, and where --json is given, an object on stdout.
int fail(const std::string& message, int code) {
  std::fprintf(stderr, "error: %s\n", without_controls(message).c_str());
  if (json_wanted) {
    const nlohmann::ordered_json record = {{"error", message}, {"exit_status", code}};
    fmt::print("{}\n", record.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  }
  return code;
}

int report(const std::exception& error, int code) {
  fail(error.what(), code);
  if (code == kOurBug) {
    std::fprintf(
        stderr,
        "This is a bug in theseus. Please report it with the command and the output of "
        "'theseus doctor'.\n");
  }
  return code;
}

int status_of(const std::exception& error) {
  return dynamic_cast<const InputError*>(&error) != nullptr     ? kYourInput
         : dynamic_cast<const NumericError*>(&error) != nullptr ? kNoTrustworthyNumber
                                                                : kOurBug;
}

int run(const std::function<int()>& action) {
  try {
    return with_context({}, action);
  } catch (const std::exception& error) {
    return report(error, status_of(error));
  }
}

// libtorch counts physical cores, and on some virtual machines finds one where there are many. Those
// of a machine are for all its processes.
void use_every_processor(int processes) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (std::getenv("OMP_NUM_THREADS") == nullptr &&
      ::sched_getaffinity(0, sizeof(allowed), &allowed) == 0) {
    at::set_num_threads(std::max(1, CPU_COUNT(&allowed) / processes));
  }
}

int act(std::string_view name, const Command& command, const std::function<int()>& action) {
  const auto place = cluster::find_place();
  // Of several processes that are interrupted together the first one says so.
  say_when_interrupted(place.first() ? "interrupted; nothing is kept" : "");
  if (!command.several) {
    require_one_process(c10::str("theseus ", name));
  }
  use_every_processor(place.local_size);
  return action();
}

// What was printed may still wait in a buffer for a disk that is full.
int finish_output(int code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) {
    return code;
  }
  const auto reason = std::generic_category().message(errno);
  return report(InputError("cannot write to standard output: " + reason), kYourInput);
}

using Actions = std::vector<std::pair<CLI::App*, std::function<int()>>>;

Actions add_commands(CLI::App& app) {
  app.set_version_flag("--version", "theseus " THESEUS_VERSION);
  app.require_subcommand(1);
  Actions actions;
  for (const auto& [name, command] : all_commands()) {
    auto* words = app.add_subcommand(std::string(name), std::string(command->help));
    actions.emplace_back(words, [name = name, command = command, action = command->add(*words)] {
      return act(name, *command, action);
    });
  }
  return actions;
}

// The source of cli/launcher/help_pages.h's table, for the build.
void print_help_pages(const CLI::App& app, const Actions& actions) {
  const auto page = [](const std::string& command, const std::string& text) {
    fmt::print("      {{\"{}\", R\"theseus({})theseus\"}},\n", command, text);
  };
  fmt::print(
      "#include \"theseus/cli/launcher/help_pages.h\"\n\n"
      "std::span<const theseus::cli::launcher::HelpPage> theseus::cli::launcher::help_pages() {{\n"
      "  static const HelpPage pages[] = {{\n");
  page("", app.help());
  for (const auto& [words, action] : actions) {
    page(words->get_name(), words->help("theseus"));
  }
  fmt::print("  }};\n  return pages;\n}}\n");
}

std::string refusal(const CLI::App& app, const CLI::ParseError& error) {
  const auto commands = app.get_subcommands();
  const auto& words = commands.empty() ? app : *commands.front();
  const auto name = commands.empty() ? "theseus" : "theseus " + words.get_name();
  return fmt::format(
      "{}\n'{} --help' lists what there is.", parse_error_text(words, name, error), name);
}

int main(int argc, char** argv) {
  machine::set_what_is_read_late();
  catch_interrupts();
  say_when_interrupted("interrupted");
  std::signal(SIGXFSZ, SIG_IGN);  // a file size limit becomes an error message

  CLI::App app("Carries a fine-tune from one transformer to another, without training.", "theseus");
  const auto actions = add_commands(app);
  const std::vector<std::string> given(argv + 1, argv + argc);
  if (given == std::vector<std::string>{"--help-pages"}) {
    print_help_pages(app, actions);
    return finish_output(kDone);
  }
  json_wanted = std::find(given.begin(), given.end(), "--json") != given.end();
  std::vector<std::string> notes;
  std::vector<std::string> words;
  const int code = run([&] {
    words = with_new_words(given, notes);
    print_notes(notes, words);
    return kDone;
  });
  if (code != kDone) {
    return code;
  }
  std::reverse(words.begin(), words.end());  // CLI11 takes them from the back
  try {
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    return error.get_exit_code() == 0 ? app.exit(error) : fail(refusal(app, error), kYourInput);
  }
  for (const auto& [command, action] : actions) {
    if (command->parsed()) {
      return finish_output(run(action));
    }
  }
  return kOurBug;
}

}  // namespace
}  // namespace theseus::cli

int main(int argc, char** argv) {
  return theseus::cli::main(argc, argv);
}
