// Rows of the cache on their way into text embeddings, in host memory.
#include "fovea/cached_rows.h"

#include <algorithm>
#include <cstring>

#include "cache/merge_copies.h"
#include "core/boundary.h"
#include "core/check.h"
#include "core/row_dtype.h"

namespace fovea {

namespace {

std::size_t row_bytes(const RowsView& rows) {
  return static_cast<std::size_t>(rows.width) * size_of(to_dtype(rows.dtype));
}

/// The rows of `range`.
RowsView part_of(const RowsView& rows, IndexRange range) {
  RowsView part = rows;
  part.data += static_cast<std::size_t>(range.begin) * row_bytes(rows);
  part.rows = range.size();
  return part;
}

/// Appends what one item contributes to one window.
void gather_item(const CacheItem& item, const RequestWindow& of, const RowSource& source,
                 std::int64_t look_ahead, GatheredRows& gathered) {
  const PlaceholderRange& placeholder = item.placeholder;
  const std::int64_t offset = placeholder.offset();
  const IndexRange positions{std::max(of.window.begin - offset, std::int64_t{0}),
                             std::min(of.window.end - offset, placeholder.length())};
  if (positions.empty()) return;
  const IndexRange wanted = placeholder.embed_range(positions);
  if (wanted.empty()) return;
  const std::optional<RowsView> rows = call_back(source, item.key);
  if (!rows && look_ahead > 0 && offset + look_ahead >= of.window.end) return;
  FOVEA_CHECK(rows, kNotFound, "request ", of.request->id, ": the encoder cache has no rows for ",
              item.key);
  FOVEA_CHECK(rows->rows == placeholder.num_embeds(), kInvalidArgument, "request ", of.request->id,
              ": the placeholder of ", item.key, " takes ", placeholder.num_embeds(),
              " rows, the encoder cache has ", rows->rows);
  FOVEA_CHECK(rows->data != nullptr || rows->width == 0, kInvalidArgument, "request ",
              of.request->id, ": no memory for the rows of ", item.key);
  gathered.rows.push_back(part_of(*rows, wanted));
  const std::int64_t shift = of.first_position + offset - of.window.begin;
  for (std::int64_t i = positions.begin; i < positions.end; ++i) {
    if (placeholder.is_embed(i)) gathered.is_embed[static_cast<std::size_t>(shift + i)] = true;
  }
}

/// Calls visit(position, row) for the positions that take rows: where the two begin, in bytes.
template <class Visit>
void for_each_row(const PlaceholderRange& placeholder, std::size_t row_bytes, Visit&& visit) {
  std::size_t row = 0;
  for (std::int64_t i = 0; i < placeholder.length(); ++i) {
    if (placeholder.is_embed(i)) visit(static_cast<std::size_t>(i) * row_bytes, row++ * row_bytes);
  }
}

void check_rows(const RowsView& rows, std::int64_t expected, std::int64_t out_rows,
                std::span<const std::byte> out) {
  FOVEA_CHECK(rows.rows == expected, kInvalidArgument, "the placeholder needs ", expected,
              " rows, got ", rows.rows);
  FOVEA_CHECK(rows.width >= 0 && (rows.data != nullptr || rows.rows == 0 || rows.width == 0),
              kInvalidArgument, "no memory for ", rows.rows, " rows of ", rows.width, " elements");
  const std::size_t bytes = static_cast<std::size_t>(out_rows) * row_bytes(rows);
  FOVEA_CHECK(out.size() == bytes, kInvalidArgument, "expected ", bytes, " bytes for ", out_rows,
              " rows, got ", out.size());
}

}  // namespace

GatheredRows gather_rows(std::span<const RequestWindow> windows, std::int64_t num_positions,
                         const RowSource& source, std::int64_t look_ahead) try {
  FOVEA_CHECK(num_positions >= 0 && source, kInvalidArgument,
              "gather_rows: expected at least 0 positions and a source of rows, got ",
              num_positions, " and ", source ? "one" : "none");
  GatheredRows gathered{.is_embed = std::vector<bool>(static_cast<std::size_t>(num_positions))};
  for (const RequestWindow& of : windows) {
    FOVEA_CHECK(of.request != nullptr, kInvalidArgument, "gather_rows: a window of no request");
    FOVEA_CHECK(of.first_position >= 0 && of.window.size() >= 0 &&
                    of.window.size() <= num_positions - of.first_position,
                kInvalidArgument, "request ", of.request->id, ": a window of ", of.window.size(),
                " positions at ", of.first_position, " leaves a batch of ", num_positions);
    for (const CacheItem& item : of.request->items) {
      gather_item(item, of, source, look_ahead, gathered);
    }
  }
  return gathered;
} catch (...) {
  rethrow_as_error();
}

void merge_rows(const GatheredRows& gathered, const EmbeddingsView& target) try {
  const std::vector<RowCopy> copies = merge_copies(gathered, target);
  if (level_bytes(target) > 0) std::memset(target.deepstack, 0, level_bytes(target));
  std::ranges::for_each(copies, copy_rows);
} catch (...) {
  rethrow_as_error();
}

void scatter_rows(const RowsView& rows, const PlaceholderRange& placeholder,
                  std::span<std::byte> out) try {
  check_rows(rows, placeholder.num_embeds(), placeholder.length(), out);
  std::ranges::fill(out, std::byte{0});
  const std::size_t bytes = row_bytes(rows);
  for_each_row(placeholder, bytes, [&](std::size_t position, std::size_t row) {
    std::memcpy(out.data() + position, rows.data + row, bytes);
  });
} catch (...) {
  rethrow_as_error();
}

void compact_rows(const RowsView& scattered, const PlaceholderRange& placeholder,
                  std::span<std::byte> out) try {
  check_rows(scattered, placeholder.length(), placeholder.num_embeds(), out);
  const std::size_t bytes = row_bytes(scattered);
  for_each_row(placeholder, bytes, [&](std::size_t position, std::size_t row) {
    std::memcpy(out.data() + row, scattered.data + position, bytes);
  });
} catch (...) {
  rethrow_as_error();
}

}  // namespace fovea
