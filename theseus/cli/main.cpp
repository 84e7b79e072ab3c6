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

#include "theseus/base/error.h"
#include "theseus/base/text.h"
#include "theseus/cli/command.h"
#include "theseus/cli/interrupt.h"
#include "theseus/cli/together.h"

namespace theseus::cli {
namespace {

int report(const std::exception& error, int code) {
  std::fprintf(stderr, "error: %s\n", without_controls(error.what()).c_str());
  if (code == kOurBug) {
    std::fprintf(
        stderr,
        "This is a bug in theseus. Please report it with the command and the output of "
        "'theseus doctor'.\n");
  }
  return code;
}

int run(const std::function<int()>& action) {
  try {
    return with_context({}, action);
  } catch (const cluster::EndedElsewhere& error) {
    return error.status();
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
  say_when_interrupted(place.first() ? interrupted_text(command) : "");
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

// CLI11 only says that a command is missing.
void mention_unknown_command(const char* word) {
  std::fprintf(stderr, "there is no command '%s'; commands:", word);
  for (const auto& [name, command] : all_commands()) {
    std::fprintf(stderr, " %s", std::string(name).c_str());
  }
  std::fputs("\n", stderr);
}

int main(int argc, char** argv) {
  catch_interrupts();
  say_when_interrupted("interrupted");
  std::signal(SIGXFSZ, SIG_IGN);  // a file size limit becomes an error message

  CLI::App app("Carries a fine-tune from one transformer to another, without training.", "theseus");
  app.set_version_flag("--version", "theseus " THESEUS_VERSION);
  app.require_subcommand(1);
  std::vector<std::pair<CLI::App*, std::function<int()>>> actions;
  for (const auto& [name, command] : all_commands()) {
    auto* words = app.add_subcommand(std::string(name), std::string(command->help));
    actions.emplace_back(words, [name = name, command = command, action = command->add(*words)] {
      return act(name, *command, action);
    });
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (argc > 1 && argv[1][0] != '-' && app.get_subcommands().empty()) {
      mention_unknown_command(argv[1]);
      return kYourInput;
    }
    if (error.get_exit_code() != 0) {
      for (const auto& word : app.remaining(/*recurse=*/true)) {
        std::fprintf(stderr, "unknown argument '%s'\n", without_controls(word).c_str());
      }
    }
    return app.exit(error) == 0 ? kDone : kYourInput;
  }
  for (const auto& [words, action] : actions) {
    if (words->parsed()) {
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
