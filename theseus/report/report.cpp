#include "theseus/report/report.h"

#include <fstream>

#include <fmt/format.h>

#include "theseus/base/error.h"
#include "theseus/report/chapters.h"
#include "theseus/report/escape.h"

namespace theseus::report {
namespace {

Chapter tell(const Document& document) {
  switch (document.kind) {
    case Kind::kTransport:
    case Kind::kAlignment:
      return tell_carried(document);
    case Kind::kEvaluate:
      return tell_evaluate(document);
    case Kind::kSweep:
      return tell_sweep(document);
    case Kind::kCompare:
      return tell_compare(document);
    case Kind::kDiagnose:
      return tell_diagnose(document);
    case Kind::kFinetune:
      return tell_finetune(document);
    case Kind::kImitation:
      return tell_imitation(document);
  }
  throw InternalError("a kind of document without a chapter");
}

Listing notes_of(const std::vector<Document>& documents) {
  Listing notes;
  for (const auto& document : documents) {
    for (const auto& note : document.entry().texts("notes")) {
      notes.items.push_back(
          documents.size() > 1 ? fmt::format("{}: {}", document.path.string(), note) : note);
    }
  }
  return notes;
}

// Results that answer the question come before how they came about.
int place_of(Kind kind) {
  switch (kind) {
    case Kind::kCompare:
      return 0;
    case Kind::kSweep:
      return 1;
    case Kind::kDiagnose:
      return 2;
    default:
      return 3;
  }
}

}  // namespace

Page make_page(const std::vector<Document>& documents) {
  require(!documents.empty(), "there is nothing to report on");
  Page page = {.title = "theseus report"};
  Section done = {.title = "What was done"};
  std::vector<std::vector<Section>> results(4);
  for (const auto& document : documents) {
    auto chapter = tell(document);
    done.parts.emplace_back(Paragraph{std::move(chapter.story)});
    if (chapter.section) {
      results[place_of(document.kind)].push_back(std::move(*chapter.section));
    }
  }
  page.sections.push_back(std::move(done));
  if (auto measured = measurements(documents); !measured.rows.empty()) {
    page.sections.push_back({.title = "Measurements", .parts = {std::move(measured)}});
  }
  if (auto compared = trainings_compared(documents)) {
    page.sections.push_back(std::move(*compared));
  }
  for (auto& group : results) {
    for (auto& section : group) {
      page.sections.push_back(std::move(section));
    }
  }
  if (auto notes = notes_of(documents); !notes.items.empty()) {
    page.sections.push_back({.title = "Notes", .parts = {std::move(notes)}});
  }
  Section origin = {.title = "Provenance"};
  for (const auto& document : documents) {
    origin.parts.emplace_back(provenance(document));
  }
  page.sections.push_back(std::move(origin));
  return page;
}

bool is_report(const std::filesystem::path& path) {
  constexpr size_t kBegin = 128;
  std::string begin(kBegin, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(begin.data(), static_cast<std::streamsize>(begin.size()));
  begin.resize(static_cast<size_t>(file.gcount()));
  return begin.find(kMark) != std::string::npos;
}

}  // namespace theseus::report
