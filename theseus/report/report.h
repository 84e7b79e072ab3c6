#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "theseus/report/document.h"
#include "theseus/report/page.h"

namespace theseus::report {

// What was done, in words; results, maps, worst parameters, notes and provenance of all documents.
// Throws InputError when a document lacks what it is about.
Page make_page(const std::vector<Document>& documents);

// One page that needs nothing else: no network, no scripts. Texts of any origin show as they are.
std::string as_html(const Page& page);
// The same numbers.
std::string as_markdown(const Page& page);

// Whether the file begins as the two above begin.
bool is_report(const std::filesystem::path& path);

}  // namespace theseus::report
