// Rows of a batch, cut into copies to their positions.
#include "cache/merge_copies.h"

#include <algorithm>
#include <optional>

#include "core/check.h"
#include "core/row_dtype.h"
#include "fovea/tower/core/shape.h"

namespace fovea {

namespace {

std::size_t part_bytes(const EmbeddingsView& target, RowDType dtype) {
  return static_cast<std::size_t>(target.hidden) * size_of(to_dtype(dtype));
}

/// Do the rows fit the target?
void check_merge(const GatheredRows& gathered, const EmbeddingsView& target) {
  const std::optional<std::int64_t> parts = checked_add(target.levels, 1);
  const auto width = parts ? checked_mul(target.hidden, *parts) : std::nullopt;
  FOVEA_CHECK(target.hidden >= 0 && target.levels >= 0 && width, kInvalidArgument,
              "rows do not fit embeddings of ", target.hidden, " with ", target.levels,
              " deepstack levels");
  std::int64_t num_rows = 0;
  for (const RowsView& rows : gathered.rows) {
    FOVEA_CHECK(rows.width == *width, kInvalidArgument, "rows of ", rows.width,
                " elements do not fit embeddings of ", target.hidden, " with ", target.levels,
                " deepstack levels");
    FOVEA_CHECK(rows.rows >= 0 && rows.rows <= std::ssize(gathered.is_embed), kInvalidArgument,
                rows.rows, " rows do not fit a mask of ", gathered.is_embed.size(), " positions");
    FOVEA_CHECK(rows.data != nullptr || rows.rows == 0 || *width == 0, kInvalidArgument,
                "no memory for ", rows.rows, " rows");
    num_rows += rows.rows;
  }
  const std::int64_t num_positions = std::ranges::count(gathered.is_embed, true);
  FOVEA_CHECK(num_rows == num_positions, kInvalidArgument, num_rows, " rows do not fit ",
              num_positions, " positions");
  FOVEA_CHECK(std::ssize(gathered.is_embed) == target.positions, kInvalidArgument, "a mask of ",
              gathered.is_embed.size(), " positions does not fit embeddings of ", target.positions);
  FOVEA_CHECK(target.data != nullptr || target.positions == 0 || target.hidden == 0,
              kInvalidArgument, "no memory for embeddings of ", target.positions, " positions");
  FOVEA_CHECK(target.levels == 0 || target.deepstack != nullptr, kInvalidArgument, target.levels,
              " deepstack levels need memory");
}

/// Appends copies of all parts of `count` rows, from `row` on, to the positions from `position` on.
void append_copies(const RowsView& rows, std::int64_t row, std::int64_t count,
                   const EmbeddingsView& target, std::int64_t position,
                   std::vector<RowCopy>& copies) {
  const std::size_t from_part = part_bytes(target, rows.dtype);
  const std::size_t to_part = part_bytes(target, target.dtype);
  const std::size_t from_row = from_part * static_cast<std::size_t>(1 + target.levels);
  for (std::int64_t part = 0; part <= target.levels; ++part) {
    std::byte* const to =
        part == 0
            ? target.data
            : target.deepstack + static_cast<std::size_t>((part - 1) * target.positions) * to_part;
    copies.push_back({.from = rows.data + static_cast<std::size_t>(row) * from_row +
                              static_cast<std::size_t>(part) * from_part,
                      .from_dtype = to_dtype(rows.dtype),
                      .from_stride = from_row,
                      .to = to + static_cast<std::size_t>(position) * to_part,
                      .to_dtype = to_dtype(target.dtype),
                      .to_stride = to_part,
                      .rows = count,
                      .width = target.hidden});
  }
}

}  // namespace

std::size_t level_bytes(const EmbeddingsView& target) {
  return static_cast<std::size_t>(target.levels * target.positions) *
         part_bytes(target, target.dtype);
}

std::vector<RowCopy> merge_copies(const GatheredRows& gathered, const EmbeddingsView& target) {
  check_merge(gathered, target);
  std::vector<RowCopy> copies;
  const auto takes_row = [&](std::int64_t position) {
    return position < target.positions && gathered.is_embed[static_cast<std::size_t>(position)];
  };
  std::int64_t position = 0;
  for (const RowsView& rows : gathered.rows) {
    for (std::int64_t row = 0; row < rows.rows;) {
      while (!takes_row(position)) ++position;
      std::int64_t count = 1;
      while (row + count < rows.rows && takes_row(position + count)) ++count;
      append_copies(rows, row, count, target, position, copies);
      row += count;
      position += count;
    }
  }
  return copies;
}

}  // namespace fovea
