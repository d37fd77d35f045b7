// From normalised floats back to the bytes they were made from.
#include "media/denormalize.h"

#include <cmath>

namespace fovea::media {
namespace {

constexpr float kSlack = 1.0f / 1024;  // of the distance between two bytes

float rounded_to(DType dtype, float value) {
  if (dtype == DType::kBF16) return bf16_to_f32(f32_to_bf16(value));
  return dtype == DType::kF16 ? f16_to_f32(f32_to_f16(value)) : value;
}

}  // namespace

Denormalizer::Denormalizer(const NormalizeTable& table, DType dtype) {
  for (std::size_t c = 0; c < table.size(); ++c) {
    Channel& channel = channels_[c];
    const float range = table[c].back() - table[c].front();
    const float slack = std::abs(range) / 255.0f * kSlack;
    channel.zero = table[c].front();
    channel.bytes_per_unit = 255.0f / range;
    for (std::size_t v = 0; v < table[c].size(); ++v) {
      channel.low[v] = rounded_to(dtype, table[c][v] - slack);
      channel.high[v] = rounded_to(dtype, table[c][v] + slack);
    }
  }
}

int Denormalizer::guess(const Channel& channel, float value) {
  const float position = (value - channel.zero) * channel.bytes_per_unit;
  if (!(position > 0.0f)) return 0;  // NaN too
  return position < 255.0f ? static_cast<int>(position + 0.5f) : 255;
}

std::size_t Denormalizer::bytes_of(std::size_t channel, std::span<const float> values,
                                   std::uint8_t* out) const {
  const Channel& c = channels_[channel];
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float value = values[i];
    auto byte = static_cast<std::size_t>(guess(c, value));
    // A 16-bit value may be nearer to a neighbour of the byte that it was made from.
    while (value < c.low[byte] && byte > 0) --byte;
    while (value > c.high[byte] && byte < 255) ++byte;
    if (!(c.low[byte] <= value && value <= c.high[byte])) return i;
    out[i] = static_cast<std::uint8_t>(byte);
  }
  return values.size();
}

std::uint8_t Denormalizer::nearest_byte(std::size_t channel, float value) const {
  return static_cast<std::uint8_t>(guess(channels_[channel], value));
}

}  // namespace fovea::media
