#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "theseus/report/document.h"
#include "theseus/report/page.h"

namespace theseus::report {

// What one document adds to the page.
struct Chapter {
  std::string story;  // what was done, in words
  std::optional<Section> section;
};

// One function for each kind of document.
Chapter tell_carried(const Document& document);  // a transport or an alignment
Chapter tell_evaluate(const Document& document);
Chapter tell_sweep(const Document& document);
Chapter tell_compare(const Document& document);
Chapter tell_diagnose(const Document& document);
Chapter tell_finetune(const Document& document);
Chapter tell_imitation(const Document& document);

// Last part of the path in a field that has one, as `source`; `otherwise` where there is none.
std::string name_of(const Entry& entry, const char* key, const char* otherwise);
// Where a document says which examples its maps come from: an earlier theseus had another word.
const char* examples_key(const Entry& entry);
// ", and written as a model"; nothing where the document does not say.
std::string written_words(const Entry& entry);

// Trainings by step side by side, and how many steps each took to the same values; nothing unless there
// are two that measured the same.
std::optional<Section> trainings_compared(const std::vector<Document>& documents);

// One row for each document, all of evaluate.
Table measurements(const std::vector<Document>& documents);
// Where the numbers of a document come from: every field that is no list of results.
Table provenance(const Document& document);

// The numbers of every space: cosines, ranks, condition and certificates, as far as the document has them. Folded; nothing
// when there are none, or more spaces than a page can show.
void add_spaces(const std::vector<Entry>& spaces, std::vector<Part>& parts);

// Which blocks of the source went to which of the target, where that is not one to one.
void add_depth(const Entry& carried, std::vector<Part>& parts);

}  // namespace theseus::report
