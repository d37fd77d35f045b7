// Positions of a prompt against rows of an encoder.
#include "fovea/placeholder.h"

#include <limits>

#include "core/boundary.h"
#include "core/check.h"

namespace fovea {

PlaceholderRange::PlaceholderRange(std::int64_t offset, std::int64_t length,
                                   const std::optional<std::vector<bool>>& is_embed) try
    : offset_(offset), length_(length) {
  FOVEA_CHECK(
      offset >= 0 && length >= 0 && length <= std::numeric_limits<std::int64_t>::max() - offset,
      kInvalidArgument, "a placeholder needs an offset and a length of at least 0, got ", offset,
      " and ", length);
  if (!is_embed) return;
  FOVEA_CHECK(std::ssize(*is_embed) == length, kInvalidArgument, "a placeholder of ", length,
              " positions needs a mask of as many, got ", is_embed->size());
  rows_before_.reserve(is_embed->size() + 1);
  rows_before_.push_back(0);
  for (const bool takes_row : *is_embed) {
    rows_before_.push_back(rows_before_.back() + (takes_row ? 1 : 0));
  }
} catch (...) {
  rethrow_as_error();
}

IndexRange PlaceholderRange::embed_range(IndexRange positions) const try {
  FOVEA_CHECK(0 <= positions.begin && positions.begin <= positions.end && positions.end <= length_,
              kInvalidArgument, "positions ", positions.begin, " to ", positions.end,
              " are not within a placeholder of ", length_);
  return {rows_before(positions.begin), rows_before(positions.end)};
} catch (...) {
  rethrow_as_error();
}

std::vector<IndexRange> PlaceholderRange::embed_spans() const try {
  if (rows_before_.empty()) {
    return length_ == 0 ? std::vector<IndexRange>() : std::vector<IndexRange>{{offset_, end()}};
  }
  std::vector<IndexRange> spans;
  for (std::int64_t i = 0; i < length_; ++i) {
    if (!is_embed(i)) continue;
    if (spans.empty() || spans.back().end != offset_ + i) spans.push_back({offset_ + i, 0});
    spans.back().end = offset_ + i + 1;
  }
  return spans;
} catch (...) {
  rethrow_as_error();
}

}  // namespace fovea
