#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

// What a report says, before it is HTML or Markdown: both are written from it, so both say the same.
// All texts are plain, of any origin; the writers escape them.
namespace theseus::report {

struct Paragraph {
  std::string text;
};

struct Listing {
  std::vector<std::string> items;
};

struct Cell {
  std::string text;
  std::vector<std::string> asides = {};  // shown smaller, behind the text
  bool best = false;                     // in its column
};

struct Column {
  std::string title;
  bool number = false;
};

// The first cell of a row is its name.
struct Table {
  std::string caption;
  std::vector<Column> columns;
  std::vector<std::vector<Cell>> rows;  // each as long as `columns`
  std::string fold = {};                // what HTML shows until asked for the table; "": the table
};

struct Point {
  double alpha = 0;
  double value = 0;
  std::optional<double> low = std::nullopt;
  std::optional<double> high = std::nullopt;
};

// A metric over alpha. At least one point, in order of alpha.
struct Curve {
  std::string caption;
  std::string metric;
  std::vector<Point> points;
  std::optional<Point> best;
  std::optional<double> base;  // the metric without the update
};

struct Spot {
  double x = 0;
  double y = 0;
};

// Values by step, of one or several runs.
struct Lines {
  struct Line {
    std::string name;
    std::vector<Spot> spots;  // at least one, in order of x
  };
  std::string caption;
  std::string across;  // what x is, in a word
  std::vector<Line> lines;
};

using Part = std::variant<Paragraph, Listing, Table, Curve, Lines>;

struct Section {
  std::string title;
  std::vector<Part> parts;
};

struct Page {
  std::string title;
  std::vector<Section> sections;
};

// The same numbers as a table, for those who cannot see the picture.
Table as_table(const Curve& curve);
Table as_table(const Lines& lines);

// Four digits, as in "0.9132" or "6.535e+07"; "-" when there is none.
std::string number_text(std::optional<double> value);
// "0.9132 (0.9011 to 0.9247)", without the interval where there is none.
std::string interval_text(const Point& point);
std::string percent_text(double share);

}  // namespace theseus::report
