#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace fovea::common {

/// Bicubic filters, corners not aligned, as torch.nn.functional.interpolate has them.
enum class BicubicTable : std::uint8_t {
  kAntialiased,  ///< a = -0.5, wider where the table shrinks
  kPlain,        ///< a = -0.75, 4 taps, places outside the table count as its edge
};

/// Resizes a square table of rows, [from * from, cols], to [to * to, cols]. Equal sides copy.
/// Source: docs/reference/deepseek_ocr.md, "Position tables"; of kPlain
/// docs/reference/retrieval.md, "DINOv2".
[[nodiscard]] std::vector<float> resize_position_table(
    std::span<const float> table, std::int64_t from, std::int64_t to, std::int64_t cols,
    BicubicTable filter = BicubicTable::kAntialiased);

/// The same of a table that begins with the row of a class token, which stays: [1 + from * from,
/// cols] to [1 + to * to, cols].
[[nodiscard]] std::vector<float> resize_class_table(
    std::span<const float> table, std::int64_t from, std::int64_t to, std::int64_t cols,
    BicubicTable filter = BicubicTable::kAntialiased);

/// Resizes a table of relative positions, [from, cols], to [to, cols]: linear, corners not aligned,
/// no antialiasing. Equal lengths copy. Source: docs/reference/deepseek_ocr.md, "Position tables".
[[nodiscard]] std::vector<float> resize_relative_table(std::span<const float> table,
                                                       std::int64_t from, std::int64_t to,
                                                       std::int64_t cols);

}  // namespace fovea::common
