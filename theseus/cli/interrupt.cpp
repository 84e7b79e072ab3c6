#include "theseus/cli/interrupt.h"

#include <array>
#include <csignal>
#include <unistd.h>

#include "theseus/base/file.h"

namespace theseus::cli {
namespace {

const std::string* said = nullptr;

// Nothing half-written stays behind when the user loses patience.
void on_interrupt(int signal) {
  remove_unfinished_files();
  if (said != nullptr) {
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, said->data(), said->size());
  }
  ::_exit(128 + signal);
}

}  // namespace

void catch_interrupts() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    const auto before = std::signal(signal, on_interrupt);
    if (signal == SIGHUP && before == SIG_IGN) {  // nohup
      std::signal(signal, SIG_IGN);
    }
  }
}

void say_when_interrupted(const std::string& words) {
  // Never freed, as the handler may run while the process ends; two, as it may be reading the one before.
  static auto& kept = *new std::array<std::string, 2>();
  auto& place = said == kept.data() ? kept[1] : kept[0];
  place = words.empty() ? "" : "\n" + words + "\n";
  said = &place;
}

std::string interrupted_text(const Command& command) {
  return command.kept.empty() ? "interrupted; nothing is kept"
                              : "interrupted (" + std::string(command.kept) + ")";
}

}  // namespace theseus::cli
