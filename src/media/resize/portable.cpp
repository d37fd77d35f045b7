// Inner loops of the resize in plain C++.
#include "media/resize/leaf.h"

namespace fovea::media {
namespace {

std::uint8_t to_byte(std::int32_t sum, int shift) {
  const std::int32_t value = sum >> shift;  // floors
  return static_cast<std::uint8_t>(value < 0 ? 0 : value > 255 ? 255 : value);
}

void horizontal(const HorizontalArgs& args) {
  const AxisView& axis = *args.axis;
  const std::int32_t half = 1 << (axis.shift - 1);
  for (std::int64_t x = 0; x < axis.out_size; ++x) {
    const std::uint8_t* src = args.src[0] + std::int64_t{axis.first[x]} * kChannels;
    const std::int32_t* weight = axis.weight + x * axis.taps;
    std::int32_t sum[kChannels] = {half, half, half};
    for (std::int32_t j = 0; j < axis.count[x]; ++j)
      for (int c = 0; c < kChannels; ++c) sum[c] += weight[j] * src[j * kChannels + c];
    for (int c = 0; c < kChannels; ++c)
      args.dst[0][x * kChannels + c] = to_byte(sum[c], axis.shift);
  }
}

void vertical(const VerticalArgs& args) {
  const AxisView& axis = *args.axis;
  const std::int32_t* weight = axis.weight + args.row * axis.taps;
  for (std::size_t i = 0; i < args.row_bytes; ++i) {
    std::int32_t sum = 1 << (axis.shift - 1);
    for (std::int32_t j = 0; j < axis.count[args.row]; ++j) sum += weight[j] * args.src[j][i];
    args.dst[i] = to_byte(sum, axis.shift);
  }
}

}  // namespace

const ResizeLeaf kPortableLeaf = {
    .rows_at_once = 1, .horizontal = horizontal, .vertical = vertical};

}  // namespace fovea::media
