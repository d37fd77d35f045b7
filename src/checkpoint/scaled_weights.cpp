// Weights of 8 bits that count a scale each, a scale for a row or a block.
#include "checkpoint/scaled_weights.h"

#include <algorithm>
#include <array>

#include "fovea/tower/core/dtype.h"

namespace fovea::checkpoint {

namespace {

constexpr std::int64_t kBlockSize = 128;

std::int64_t blocks_of(std::int64_t size, std::int64_t block) { return (size + block - 1) / block; }

}  // namespace

std::optional<ScaleBlock> scale_block(const std::vector<std::int64_t>& weight,
                                      const std::vector<std::int64_t>& scales) {
  if (weight.size() != 2 || weight[0] < 1 || weight[1] < 1) return std::nullopt;
  const std::int64_t rows = weight[0];
  const std::int64_t cols = weight[1];
  const auto are = [&](const std::vector<std::int64_t>& shape) { return scales == shape; };
  if (are({}) || are({1}) || are({1, 1})) return ScaleBlock{rows, cols};
  if (are({rows}) || are({rows, 1})) return ScaleBlock{1, cols};
  if (are({blocks_of(rows, kBlockSize), blocks_of(cols, kBlockSize)})) {
    return ScaleBlock{kBlockSize, kBlockSize};
  }
  return std::nullopt;
}

void scale_weights(std::span<const std::byte> bits, std::int64_t cols, const ScaleBlock& block,
                   std::span<const float> scales, std::span<float> out) {
  std::array<float, 256> values{};
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = e4m3_to_f32(static_cast<std::uint8_t>(i));
  }
  const std::int64_t rows = std::ssize(bits) / cols;
  const std::int64_t in_row = blocks_of(cols, block.cols);
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t b = 0; b < in_row; ++b) {
      const float scale = scales[static_cast<std::size_t>(r / block.rows * in_row + b)];
      const std::int64_t end = std::min((b + 1) * block.cols, cols);
      for (std::int64_t c = b * block.cols; c < end; ++c) {
        const auto at = static_cast<std::size_t>(r * cols + c);
        out[at] = values[std::to_integer<std::size_t>(bits[at])] * scale;
      }
    }
  }
}

}  // namespace fovea::checkpoint
