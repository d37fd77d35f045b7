#pragma once

#include <cstddef>
#include <ostream>
#include <string>
#include <vector>

namespace fovea::cli {

/// A table of text for a terminal: columns two spaces apart, titles underlined, no line longer than
/// its cells, no trailing blanks.
class Table {
 public:
  enum class Align { kLeft, kRight };
  struct Column {
    std::string title;
    Align align = Align::kRight;  ///< numbers, the common case
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// Appends a row; cells that are not given stay empty.
  void add_row(std::vector<std::string> cells);
  /// Appends a line under which totals stand.
  void add_rule();

  [[nodiscard]] std::string text() const;

 private:
  struct Row {
    bool rule = false;
    std::vector<std::string> cells;
  };
  [[nodiscard]] std::vector<std::size_t> widths() const;

  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

/// Number of characters (code points) of a UTF-8 text.
[[nodiscard]] std::size_t text_width(const std::string& text);

}  // namespace fovea::cli
