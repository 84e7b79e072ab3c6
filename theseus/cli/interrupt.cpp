#include "theseus/cli/interrupt.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <limits>
#include <string_view>
#include <unistd.h>
#include <utility>

#include "theseus/base/file.h"
#include "theseus/base/interrupts.h"
#include "theseus/output/work_directory.h"

namespace theseus::cli {
namespace {

struct Work {
  std::string path;
  std::vector<std::string> files;  // any of them: there is something to go on with
};

struct Interruption {
  std::string words;  // where no work is kept
  std::vector<Work> works;
  int outputs = std::numeric_limits<int>::max();  // of the whole job
  const Interruption* before = nullptr;           // what was expected until then
};

std::atomic<const Interruption*> expected = nullptr;

void say(std::string_view text) {
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text.data(), text.size());
}

bool holds(const Work& work) {
  return std::any_of(work.files.begin(), work.files.end(), [](const std::string& file) {
    return ::access(file.c_str(), F_OK) == 0;
  });
}

// As parts that are there already: the handler may have interrupted an allocation, so it must not make one.
void say_end(const Interruption& interruption) {
  constexpr std::string_view kBegin = "\ninterrupted (work in ", kNext = ", ",
                             kEnd = " is kept: the same command goes on from there)\n",
                             kNothing = "\ninterrupted; nothing is kept to go on from (",
                             kAnew =
                                 " holds too little: the same command starts anew, and removes "
                                 "it)\n";
  bool any = false;
  for (const auto& work : interruption.works) {
    if (holds(work)) {
      say(any ? kNext : kBegin);
      say(work.path);
      any = true;
    }
  }
  if (any) {
    say(kEnd);
    return;
  }
  for (const auto& work : interruption.works) {
    if (::access(work.path.c_str(), F_OK) == 0) {
      say(any ? kNext : kNothing);
      say(work.path);
      any = true;
    }
  }
  say(any ? kAnew : interruption.words);
}

// Nothing half-written stays behind when the user loses patience, and what is finished stays so.
void on_interrupt(int signal) {
  if (must_wait(signal)) {
    return;
  }
  const Interruption* interruption = expected;
  if (interruption != nullptr && outputs_there() >= interruption->outputs) {
    std::signal(
        signal, SIG_DFL);  // only what was done is left to say; who insists need not hear it
    return;
  }
  remove_unfinished_files();
  if (interruption != nullptr) {
    say_end(*interruption);
  }
  ::_exit(128 + signal);
}

// Never freed, as the handler may be reading what was there before.
void expect(Interruption interruption) {
  interruption.before = expected;
  expected = new Interruption(std::move(interruption));
}

}  // namespace

void catch_interrupts() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    if (std::signal(signal, on_interrupt) == SIG_IGN) {
      std::signal(signal, SIG_IGN);
    }
  }
}

void say_when_interrupted(const std::string& words) {
  expect({.words = words.empty() ? "" : "\n" + words + "\n"});
}

void say_what_is_kept(const std::vector<std::filesystem::path>& outs) {
  Interruption interruption{
      .words = "\ninterrupted; nothing is kept\n",
      .outputs = outputs_there() + static_cast<int>(outs.size())};
  for (const auto& out : outs) {
    const auto place = output::work_path(out);
    auto& work = interruption.works.emplace_back(Work{.path = place.string()});
    for (const char* file : output::kWorkFiles) {
      work.files.push_back((place / file).string());
    }
  }
  expect(std::move(interruption));
}

}  // namespace theseus::cli
