#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace fovea::checkpoint {

/// The part of a weight matrix that one scale is for.
struct ScaleBlock {
  std::int64_t rows;
  std::int64_t cols;
};

/// The part of a matrix [rows, cols] that each of its scales is for, by their shape: all of it ([],
/// [1], [1, 1]), a row ([rows], [rows, 1]), or a block of 128 x 128. Nothing if they do not fit.
/// Source: the formats of compressed-tensors ("float-quantized") and ModelOpt, and the
/// weight_scale_inv of DeepSeek-V3, which is multiplied despite its name.
[[nodiscard]] std::optional<ScaleBlock> scale_block(const std::vector<std::int64_t>& weight,
                                                    const std::vector<std::int64_t>& scales);

/// out[r, c] = value of E4M3 bits[r, c] * scales[block of r, block of c], in float32.
/// @param bits, out matrices of `cols` columns. @param scales one for each block, row by row.
void scale_weights(std::span<const std::byte> bits, std::int64_t cols, const ScaleBlock& block,
                   std::span<const float> scales, std::span<float> out);

}  // namespace fovea::checkpoint
