// Text tables: measure every column once, then write line by line.
#include "report/table.h"

#include <algorithm>
#include <numeric>
#include <sstream>

#include "report/text.h"

namespace fovea::cli {
namespace {

constexpr std::string_view kGap = "  ";

void append_cell(std::string& line, const std::string& cell, std::size_t width,
                 Table::Align align) {
  const std::string blanks(width - text_width(cell), ' ');
  line += align == Table::Align::kLeft ? cell + blanks : blanks + cell;
}

void finish_line(std::string& out, std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  out += line + "\n";
}

}  // namespace

std::size_t text_width(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;  // not a continuation byte
  }));
}

void Table::add_row(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  rows_.push_back({.rule = false, .cells = std::move(cells)});
}

void Table::add_rule() { rows_.push_back({.rule = true, .cells = {}}); }

std::vector<std::size_t> Table::widths(const std::vector<Row>& rows) const {
  std::vector<std::size_t> result;
  for (std::size_t column = 0; column < columns_.size(); ++column) {
    std::size_t width = text_width(columns_[column].title);
    for (const Row& row : rows) {
      if (!row.rule) width = std::max(width, text_width(row.cells[column]));
    }
    result.push_back(width);
  }
  return result;
}

/// The rows with a row more for every line that a cell of the last column goes on for.
std::vector<Table::Row> Table::broken(std::size_t columns) const {
  if (columns == kUnbounded || columns_.back().align == Align::kRight) return rows_;
  const std::vector<std::size_t> width = widths(rows_);
  const std::size_t before = std::accumulate(width.begin(), width.end() - 1, std::size_t{0}) +
                             kGap.size() * (width.size() - 1);
  std::vector<Row> rows;
  for (const Row& row : rows_) {
    rows.push_back(row);
    if (row.rule) continue;
    std::istringstream lines(wrapped(row.cells.back(), std::max(columns, before + 1) - before));
    std::getline(lines, rows.back().cells.back());
    for (std::string line; std::getline(lines, line);) {
      rows.push_back({.rule = false, .cells = std::vector<std::string>(columns_.size())});
      rows.back().cells.back() = std::move(line);
    }
  }
  return rows;
}

std::string Table::text(std::size_t columns) const {
  const std::vector<Row> rows = broken(columns);
  const std::vector<std::size_t> width = widths(rows);
  const auto line_of = [&](auto&& cell_of) {
    std::string line;
    for (std::size_t column = 0; column < columns_.size(); ++column) {
      if (column > 0) line += kGap;
      append_cell(line, cell_of(column), width[column], columns_[column].align);
    }
    return line;
  };
  const std::string rule =
      line_of([&](std::size_t column) { return std::string(width[column], '-'); });

  std::string out;
  finish_line(out, line_of([&](std::size_t column) { return columns_[column].title; }));
  finish_line(out, rule);
  for (const Row& row : rows) {
    finish_line(out, row.rule ? rule : line_of([&](std::size_t c) { return row.cells[c]; }));
  }
  return out;
}

}  // namespace fovea::cli
