// Packs the weights of a linear layer into panels.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "core/check.h"
#include "ops/cpu/gemm/gemm.h"
#include "ops/cpu/gemm/panel_layout.h"

namespace fovea::cpu {

namespace {

/// Brings the columns of a panel, [kPanelColumns][rows] pieces, into its order, [rows][words].
/// @tparam Piece the values of k of one column that lie side by side. Where they are half a word,
///   columns j and j + 16 share it.
template <class Piece>
void interleave(const std::byte* columns, std::int64_t rows, std::byte* panel) {
  constexpr std::int64_t kBlock = 64;  // rows at a time: 4 or 8 KB, in L1
  constexpr std::size_t kWords = kPanelColumns * sizeof(Piece) / kGroupBytes;
  std::array<std::array<Piece, kBlock>, kPanelColumns> block;
  std::array<std::uint32_t, kWords> row;
  for (std::int64_t first = 0; first < rows; first += kBlock) {
    const auto count = static_cast<std::size_t>(std::min(kBlock, rows - first));
    for (std::size_t c = 0; c < kPanelColumns; ++c) {
      const auto piece = static_cast<std::int64_t>(c) * rows + first;
      std::memcpy(block[c].data(), columns + piece * std::int64_t{sizeof(Piece)},
                  count * sizeof(Piece));
    }
    for (std::size_t k = 0; k < count; ++k, panel += sizeof(row)) {
      for (std::size_t w = 0; w < kWords; ++w) {
        row[w] = block[w][k];
        if constexpr (kWords < kPanelColumns)
          row[w] |= static_cast<std::uint32_t>(block[w + kWords][k]) << 16;
      }
      std::memcpy(panel, row.data(), sizeof(row));
    }
  }
}

/// Brings one column into integers, 255 steps from its smallest weight to the largest.
/// @param terms its scale, `stride` on what 0 stands for, then the sum of its integers.
void quantize_column(std::span<const float> weights, std::byte* integers, float* terms,
                     std::int64_t stride) {
  const auto [low, high] = std::ranges::minmax(weights);
  const float middle = low / 2 + high / 2;
  float poison = 0;  // NaN for a column with an infinity or NaN, whose integers mean nothing
  for (const float weight : weights) poison += weight * 0.0f;
  const float scale = high / 254 - low / 254 + poison;
  std::int64_t sum = 0;
  for (std::size_t k = 0; k < weights.size(); ++k) {
    const float from_middle = weights[k] - middle;
    const float value = scale > 0 ? std::nearbyint(from_middle / scale) : 0.0f;
    const auto integer = static_cast<std::int8_t>(std::clamp(value, -127.0f, 127.0f));
    integers[k] = static_cast<std::byte>(integer);
    sum += integer;
  }
  terms[0] = scale;
  terms[stride] = middle;
  terms[2 * stride] = static_cast<float>(sum);
}

DType packed_dtype(GemmFormat format, DType stored) {
  switch (format) {
    case GemmFormat::kInt8: return DType::kI8;
    case GemmFormat::kBf16: return DType::kBF16;
    case GemmFormat::kF32: break;
  }
  return stored == DType::kBF16 ? DType::kBF16 : DType::kF32;
}

/// One column of a panel in the packed format.
/// @param terms of the column in kI8, as quantize_column writes them.
void convert_column(const ConstTensorView& weight, std::int64_t column, DType packed,
                    std::vector<float>& widened, std::byte* to, float* terms, std::int64_t stride) {
  const std::size_t row_bytes = widened.size() * size_of(weight.dtype);
  const std::byte* const row = weight.data + static_cast<std::size_t>(column) * row_bytes;
  if (weight.dtype == packed) {
    std::memcpy(to, row, row_bytes);
    return;
  }
  widen_to_f32(weight.dtype, row, widened.data(), widened.size());
  if (packed == DType::kI8) {
    quantize_column(widened, to, terms + column, stride);
  } else {
    narrow_from_f32(widened.data(), packed, to, widened.size());
  }
}

void pack_panels(const PanelLayout& layout, const ConstTensorView& weight,
                 ops::PackedLinear& packed) {
  const std::int64_t panel_bytes = layout.panel_bytes(packed.in_features);
  const std::int64_t column_bytes = panel_bytes / kPanelColumns;
  const std::int64_t rows = panel_bytes / layout.row_bytes();
  const std::int64_t stride = round_up(packed.out_features, kPanelColumns);
  auto* const terms = reinterpret_cast<float*>(packed.scale.data());
  std::vector<float> widened(static_cast<std::size_t>(packed.in_features));
  std::vector<std::byte> columns(static_cast<std::size_t>(panel_bytes));  // zeros behind the last k
  std::byte* panel = packed.weight.data();
  for (std::int64_t first = 0; first < packed.out_features; first += kPanelColumns) {
    const std::int64_t count = std::min(kPanelColumns, packed.out_features - first);
    std::fill(columns.begin() + count * column_bytes, columns.end(), std::byte{0});
    for (std::int64_t c = 0; c < count; ++c) {
      convert_column(weight, first + c, packed.dtype, widened, columns.data() + c * column_bytes,
                     terms, stride);
    }
    if (layout.row_bytes() == kPanelRowBytes) {
      interleave<std::uint32_t>(columns.data(), rows, panel);
    } else {
      interleave<std::uint16_t>(columns.data(), rows, panel);
    }
    panel += panel_bytes;
  }
}

}  // namespace

ops::PackedLinear pack_linear(Device& device, ConstTensorView weight, ConstTensorView bias,
                              GemmFormat format) {
  ops::PackedLinear packed;
  packed.out_features = weight.shape[0];
  packed.in_features = weight.shape[1];
  packed.has_bias = static_cast<bool>(bias);
  packed.dtype = packed_dtype(format, weight.dtype);
  const PanelLayout layout = PanelLayout::of(format, packed.dtype);
  const std::int64_t panels = ceil_div(packed.out_features, kPanelColumns);
  const auto column_bytes = static_cast<std::size_t>(panels * kPanelColumns) * sizeof(float);
  packed.weight =
      device.allocate(static_cast<std::size_t>(panels * layout.panel_bytes(packed.in_features)));
  if (format == GemmFormat::kInt8) packed.scale = device.allocate(3 * column_bytes);
  packed.bias = device.allocate(column_bytes);
  pack_panels(layout, weight, packed);
  if (bias) {
    widen_to_f32(bias.dtype, bias.data, reinterpret_cast<float*>(packed.bias.data()),
                 static_cast<std::size_t>(packed.out_features));
  }
  return packed;
}

}  // namespace fovea::cpu
