#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace fovea::deepseek_ocr {

/// Resizes a square table of rows, [from * from, cols], to [to * to, cols]: bicubic with a = -0.5,
/// antialiased, corners not aligned. Equal sides copy.
/// Source: DeepSeek-OCR specification, section 5.1 step 2 (torch interpolate, antialias=True).
[[nodiscard]] std::vector<float> resize_position_table(std::span<const float> table,
                                                       std::int64_t from, std::int64_t to,
                                                       std::int64_t cols);

/// Resizes a table of relative positions, [from, cols], to [to, cols]: linear, corners not aligned,
/// no antialiasing. Equal lengths copy. Source: DeepSeek-OCR specification, section 5.1 step 4.
[[nodiscard]] std::vector<float> resize_relative_table(std::span<const float> table,
                                                       std::int64_t from, std::int64_t to,
                                                       std::int64_t cols);

}  // namespace fovea::deepseek_ocr
