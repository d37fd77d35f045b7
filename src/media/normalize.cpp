// Tables of the byte-to-float rules. Every step rounds to f32 exactly where the reference does, so
// this file must not be compiled with fast-math. No multiplication feeds an addition, so nothing
// can be contracted into an FMA.
#include "media/normalize.h"

#include <cstddef>

#include "fovea/tower/core/dtype.h"

namespace fovea::media {
namespace {

/// table[c][v] = (v / divisor - mean[c]) / std[c] for one channel, f32 after every step.
void fill_channel(float divisor, float mean, float std, std::array<float, 256>& channel) {
  for (std::size_t v = 0; v < channel.size(); ++v)
    channel[v] = (static_cast<float>(v) / divisor - mean) / std;
}

float round_to_bf16(float value) { return bf16_to_f32(f32_to_bf16(value)); }

}  // namespace

NormalizeTable fused_normalize_table(const std::array<float, 3>& mean,
                                     const std::array<float, 3>& std, double rescale_factor) {
  const auto levels = static_cast<float>(1.0 / rescale_factor);  // 255 for 1/255
  NormalizeTable table{};
  for (std::size_t c = 0; c < table.size(); ++c)
    fill_channel(1.0f, mean[c] * levels, std[c] * levels, table[c]);
  return table;
}

NormalizeTable to_tensor_normalize_table(const std::array<float, 3>& mean,
                                         const std::array<float, 3>& std) {
  NormalizeTable table{};
  for (std::size_t c = 0; c < table.size(); ++c) fill_channel(255.0f, mean[c], std[c], table[c]);
  return table;
}

NormalizeTable bf16_normalize_table(const std::array<float, 3>& mean,
                                    const std::array<float, 3>& std, double rescale_factor) {
  const auto factor = static_cast<float>(rescale_factor);
  NormalizeTable table{};
  for (std::size_t c = 0; c < table.size(); ++c) {
    const float bf16_mean = round_to_bf16(mean[c]);
    const float bf16_std = round_to_bf16(std[c]);
    for (std::size_t v = 0; v < table[c].size(); ++v) {
      const float rescaled = round_to_bf16(static_cast<float>(v) * factor);
      table[c][v] = round_to_bf16(round_to_bf16(rescaled - bf16_mean) / bf16_std);
    }
  }
  return table;
}

}  // namespace fovea::media
