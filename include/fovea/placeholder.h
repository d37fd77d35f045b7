#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "fovea/export.h"

namespace fovea {

/// The indices from `begin` up to, but without, `end`.
struct IndexRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;

  [[nodiscard]] std::int64_t size() const noexcept { return end - begin; }
  [[nodiscard]] bool empty() const noexcept { return end <= begin; }
  friend bool operator==(const IndexRange&, const IndexRange&) = default;
};

/// The positions of a prompt that stand for one image or video, and which of them take a row of the
/// encoder: the others are separators, timestamps and the like, whose embeddings are text.
/// Immutable. Source: vLLM pull request 30475, `PlaceholderRange`.
class FOVEA_API PlaceholderRange {
 public:
  /// @param offset index of the first position in the prompt.
  /// @param is_embed for each of the `length` positions, whether it takes a row; absent: all do.
  /// @throws Error(kInvalidArgument) for a negative number, a mask of another size, and positions
  /// that 63 bits do not count.
  PlaceholderRange(std::int64_t offset, std::int64_t length,
                   const std::optional<std::vector<bool>>& is_embed = std::nullopt);

  [[nodiscard]] std::int64_t offset() const noexcept { return offset_; }
  [[nodiscard]] std::int64_t length() const noexcept { return length_; }
  /// The prompt position behind the last.
  [[nodiscard]] std::int64_t end() const noexcept { return offset_ + length_; }
  /// Number of positions that take a row: rows of the item.
  [[nodiscard]] std::int64_t num_embeds() const noexcept { return rows_before(length_); }
  /// Whether position `position`, counted from offset(), takes a row. 0 <= position < length().
  [[nodiscard]] bool is_embed(std::int64_t position) const noexcept {
    return rows_before(position + 1) > rows_before(position);
  }

  /// The rows of the item that belong to some of its positions, counted from offset().
  /// @throws Error(kInvalidArgument) unless 0 <= begin <= end <= length().
  [[nodiscard]] IndexRange embed_range(IndexRange positions) const;
  /// The runs of prompt positions that take rows, ascending.
  [[nodiscard]] std::vector<IndexRange> embed_spans() const;

  /// A mask of nothing but true differs from an absent one.
  friend bool operator==(const PlaceholderRange&, const PlaceholderRange&) = default;

 private:
  [[nodiscard]] std::int64_t rows_before(std::int64_t position) const noexcept {
    return rows_before_.empty() ? position : rows_before_[static_cast<std::size_t>(position)];
  }

  std::int64_t offset_;
  std::int64_t length_;
  std::vector<std::int64_t> rows_before_;  // each position, and the end; empty without a mask
};

}  // namespace fovea
