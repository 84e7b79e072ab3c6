// theseus report RUN... -o FILE

#include "theseus/report/report.h"

#include <algorithm>
#include <memory>

#include <fmt/format.h>

#include "theseus/base/error.h"
#include "theseus/base/file.h"
#include "theseus/cli/command.h"
#include "theseus/cli/output_path.h"

namespace theseus::cli::commands {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::vector<std::string> runs;
  std::string out;
  std::string format;  // "": by the name of `out`
  bool force = false;
};

bool is_markdown(const Options& options) {
  const auto extension = fs::path(options.out).extension();
  return options.format.empty() ? extension == ".md" || extension == ".markdown"
                                : options.format == "md";
}

void check_out(const Options& options, const std::vector<theseus::report::Document>& documents) {
  check_writable(options.out);
  std::vector<fs::path> needed;
  std::transform(
      documents.begin(), documents.end(), std::back_inserter(needed),
      [](const auto& document) { return document.path; });
  check_nothing_lost(options.out, needed, {});
  std::error_code ignored;
  require(
      options.force || !fs::exists(options.out, ignored) || theseus::report::is_report(options.out),
      "--out: ", options.out, " is there and is not a report of theseus; give another name, or ",
      "--force to replace it");
}

int run(const Options& options) {
  std::vector<theseus::report::Document> documents;
  for (const auto& run : options.runs) {
    for (auto& document : theseus::report::read_run(run)) {
      documents.push_back(std::move(document));
    }
  }
  check_out(options, documents);
  const auto page = theseus::report::make_page(documents);
  const auto text =
      is_markdown(options) ? theseus::report::as_markdown(page) : theseus::report::as_html(page);
  AtomicFile file(options.out, static_cast<int64_t>(text.size()));
  file.append(text);
  file.commit();
  fmt::print("written to {}\n", options.out);
  return kDone;
}

std::function<int()> add(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option(
         "run", options->runs,
         "what transport, align or finetune wrote, or JSON of evaluate, sweep, compare or diagnose")
      ->type_name("RUN")
      ->required();
  app.add_option("-o,--out", options->out, "the page to write")->type_name("FILE")->required();
  app.add_option("--format", options->format, "html or md (without: md if FILE ends so, else html)")
      ->check(CLI::IsMember({"html", "md"}));
  app.add_flag("--force", options->force, "replace FILE even if it is not a report");
  return [options] { return run(*options); };
}

}  // namespace

const Command& report() {
  static const Command command = {
      .help = "one page, HTML or Markdown, on what other commands wrote", .add = add};
  return command;
}

}  // namespace theseus::cli::commands
