#include "theseus/cli/draw_option.h"

#include "theseus/base/error.h"
#include "theseus/base/text.h"

namespace theseus::cli {
namespace {

std::string draw_error(const std::string& text) {
  constexpr size_t kMostDigits = 12;
  const bool number = !text.empty() && text.size() <= kMostDigits &&
                      text.find_first_not_of("0123456789") == std::string::npos &&
                      text.find_first_not_of('0') != std::string::npos;
  return number || text == "all" ? ""
                                 : "'" + printable(text, 40) +
                                       "' is no number of examples; expected one from 1 on, or all";
}

bool is_given(const CLI::App& app, const char* option) {
  const auto* found = app.get_option_no_throw(option);
  return found != nullptr && found->count() > 0;
}

}  // namespace

void add_draw(CLI::App& app, std::string& draw) {
  app.add_option(
         "--draw", draw,
         "draw so many of the examples, or take all of them (default: 960, or all where there are "
         "fewer)")
      ->check(draw_error)
      ->type_name("N|all");
}

void read_draw(const CLI::App& app, const std::string& draw, stats::Sampling& sampling) {
  const bool drawn = is_given(app, "--draw"), batches = is_given(app, "--batches"),
             shots = is_given(app, "--shots");
  require(
      !drawn || !batches,
      "--draw and --batches both say how many examples are drawn: --draw counts examples, "
      "--batches batches of them; give one of the two");
  require(
      !drawn || !shots,
      "--draw and --shots both say how many examples are drawn: --draw counts all of them, --shots "
      "those of each class; give one of the two");
  if (drawn && draw != "all") {
    sampling.draw = std::stoll(draw);
  }
  sampling.most = drawn || batches || shots ? 0 : kDrawn;
}

}  // namespace theseus::cli
