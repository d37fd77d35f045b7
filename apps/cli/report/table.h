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

  /// @param columns of a line: text in the last column is broken between words to keep to them, and
  /// goes on below. Other columns, and words, stay whole.
  [[nodiscard]] std::string text(std::size_t columns = kUnbounded) const;

  static constexpr std::size_t kUnbounded = ~std::size_t{0};

 private:
  struct Row {
    bool rule = false;
    std::vector<std::string> cells;
  };
  [[nodiscard]] std::vector<std::size_t> widths(const std::vector<Row>& rows) const;
  [[nodiscard]] std::vector<Row> broken(std::size_t columns) const;

  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

/// Number of characters (code points) of a UTF-8 text.
[[nodiscard]] std::size_t text_width(const std::string& text);

}  // namespace fovea::cli
