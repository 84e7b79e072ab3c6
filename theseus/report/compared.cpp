#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "theseus/base/error.h"
#include "theseus/report/chapters.h"

// The table of a comparison: methods down, tasks across.
namespace theseus::report {
namespace {

// The columns that the document names, then those that only its rows have.
std::vector<std::string> tasks_of(const Entry& entry, const std::vector<Entry>& rows) {
  auto tasks = entry.texts("columns");
  std::set<std::string> known(tasks.begin(), tasks.end());
  for (const auto& row : rows) {
    const auto cells = row.entry("cells");
    for (const auto& task : cells ? cells->keys() : std::vector<std::string>()) {
      if (known.insert(task).second) {
        tasks.push_back(task);
      }
    }
  }
  return tasks;
}

std::vector<std::string> asides_of(const Entry& cell) {
  std::vector<std::string> asides;
  if (const auto low = cell.number("low"), high = cell.number("high"); low && high) {
    asides.push_back(fmt::format("{} to {}", number_text(low), number_text(high)));
  }
  if (const auto alpha = cell.number("alpha")) {
    asides.push_back("alpha " + number_text(alpha));
  }
  return asides;
}

class Comparison {
 public:
  Comparison(const Entry& entry, const std::vector<Entry>& rows)
      : tasks_(tasks_of(entry, rows)), larger_(entry.boolean("higher_is_better", true)) {
    constexpr size_t kMostCells = 100000;
    require(
        rows.size() * tasks_.size() <= kMostCells, entry.where(), ": ", rows.size(), " rows and ",
        tasks_.size(), " columns are more than a report shows");
    for (const auto& row : rows) {
      const auto cells = row.entry("cells");
      for (const auto& task : tasks_) {
        const auto cell = cells ? cells->entry(task) : std::nullopt;
        const auto value = cell ? cell->number("value") : std::nullopt;
        if (value) {
          const auto [found, first] = best_.try_emplace(task, *value);
          found->second =
              larger_ ? std::max(found->second, *value) : std::min(found->second, *value);
        }
      }
    }
  }

  const std::vector<std::string>& tasks() const { return tasks_; }

  Cell cell(const Entry& row, const std::string& task) const {
    const auto cells = row.entry("cells");
    const auto found = cells ? cells->entry(task) : std::nullopt;
    const auto value = found ? found->number("value") : std::nullopt;
    return {
        .text = number_text(value),
        .asides = found ? asides_of(*found) : std::vector<std::string>(),
        .best = value && *value == best_.at(task)};
  }

 private:
  std::vector<std::string> tasks_;
  bool larger_;
  std::map<std::string, double> best_;
};

std::string name_of(const Entry& row) {
  const auto shots = row.word("shots");
  const bool number = shots.find_first_not_of("0123456789") == std::string::npos;
  return row.text("method", "-") +
         (shots.empty() ? "" : fmt::format(" ({}{})", shots, number ? " shots" : ""));
}

// Who is best how often; rows that are never are not named.
std::string winners(const Table& table) {
  std::map<std::string, size_t> wins;
  std::vector<std::string> order;
  for (const auto& row : table.rows) {
    for (const auto& cell : row) {
      if (cell.best && wins[row.front().text]++ == 0) {
        order.push_back(row.front().text);
      }
    }
  }
  std::stable_sort(order.begin(), order.end(), [&](const auto& left, const auto& right) {
    return wins[left] > wins[right];
  });
  std::string words;
  for (const auto& name : order) {
    words += fmt::format("{}{} in {}", words.empty() ? "" : ", ", name, wins[name]);
  }
  return words;
}

}  // namespace

Chapter tell_compare(const Document& document) {
  const auto entry = document.entry();
  const auto rows = entry.entries("rows");
  const Comparison comparison(entry, rows);
  const auto metric = entry.text("metric");
  Table table = {
      .caption = fmt::format(
          "{}The best of each column is marked{}", metric.empty() ? "" : metric + ". ",
          entry.boolean("higher_is_better", true) ? "" : "; smaller is better"),
      .columns = {{"method", false}}};
  for (const auto& task : comparison.tasks()) {
    table.columns.push_back({task, true});
  }
  for (const auto& row : rows) {
    std::vector<Cell> cells = {{name_of(row)}};
    for (const auto& task : comparison.tasks()) {
      cells.push_back(comparison.cell(row, task));
    }
    table.rows.push_back(std::move(cells));
  }
  const auto best = winners(table);
  return {
      .story = fmt::format(
          "{} ways were compared on {} tasks{}.", rows.size(), comparison.tasks().size(),
          best.empty() ? "" : "; best: " + best),
      .section = Section{.title = "Comparison", .parts = {std::move(table)}}};
}

}  // namespace theseus::report
