// Tables of the byte-to-float rules. Every step rounds to f32 exactly where the reference does, so
// this file must not be compiled with fast-math; there is no product to contract into an FMA.
#include "media/normalize.h"

#include <cstddef>

namespace fovea::media {
namespace {

/// table[c][v] = (v / divisor - mean[c]) / std[c] for one channel, f32 after every step.
void fill_channel(float divisor, float mean, float std, std::array<float, 256>& channel) {
  for (std::size_t v = 0; v < channel.size(); ++v)
    channel[v] = (static_cast<float>(v) / divisor - mean) / std;
}

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

}  // namespace fovea::media
