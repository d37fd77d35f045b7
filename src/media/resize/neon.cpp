// Inner loops of the resize for NEON: products of pixels widened to 16 bits, sums in 32 bits.
// Weights of more than 16 bits come as two planes whose sums are put together at the end; all of it
// is exact, so every order gives the same bytes.
#include <arm_neon.h>

#include "media/resize/leaf.h"
#include "media/resize/row_blocks.h"

namespace fovea::media {
namespace {

constexpr std::size_t kBlockBytes = 16;

/// Sums of one kind of weights.
struct Sums {
  int32x4_t part[4] = {vdupq_n_s32(0), vdupq_n_s32(0), vdupq_n_s32(0), vdupq_n_s32(0)};
};

int32x4_t join_planes(int32x4_t high, int32x4_t low) {
  return vaddq_s32(vshlq_n_s32(high, kLowPlaneBits), low);
}

/// Sums to numbers that are clipped to bytes later: adds 1/2 and floors.
int32x4_t round_sums(int32x4_t sums, int shift) {
  return vshlq_s32(vaddq_s32(sums, vdupq_n_s32(1 << (shift - 1))), vdupq_n_s32(-shift));
}

int16x8_t widen(uint8x8_t bytes) { return vreinterpretq_s16_u16(vmovl_u8(bytes)); }

/// Four pixels RGBRGBRGBRGB to RRRRGGGG, BBBB----.
uint8x16_t by_channel(uint8x16_t pixels) {
  constexpr std::uint8_t z = 255;  // gives a zero
  static constexpr std::uint8_t kOrder[] = {0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11, z, z, z, z};
  return vqtbl1q_u8(pixels, vld1q_u8(kOrder));
}

/// Sums of one output pixel: R G B -.
template <bool kTwoPlanes>
int32x4_t filter_pixel(const AxisView& axis, const std::uint8_t* row, std::int64_t x) {
  const std::uint8_t* src = row + std::int64_t{axis.first[x]} * kChannels;
  const std::int64_t begin = x * axis.taps;
  Sums sums;
  Sums low_sums;
  for (std::int64_t j = 0; j < axis.taps; j += kTapGroup, src += kTapGroup * kChannels) {
    const uint8x16_t ordered = by_channel(vld1q_u8(src));
    const int16x8_t red_green = widen(vget_low_u8(ordered));
    const int16x8_t blue = widen(vget_high_u8(ordered));
    const auto add = [&](Sums& to, const std::int16_t* weights) {
      const int16x4_t four = vld1_s16(weights);
      to.part[0] = vmlal_s16(to.part[0], vget_low_s16(red_green), four);
      to.part[1] = vmlal_s16(to.part[1], vget_high_s16(red_green), four);
      to.part[2] = vmlal_s16(to.part[2], vget_low_s16(blue), four);
    };
    add(sums, axis.planes[0] + begin + j);
    if constexpr (kTwoPlanes) add(low_sums, axis.planes[1] + begin + j);
  }
  const auto total = [](const Sums& of) {
    return vpaddq_s32(vpaddq_s32(of.part[0], of.part[1]), vpaddq_s32(of.part[2], of.part[3]));
  };
  return kTwoPlanes ? join_planes(total(sums), total(low_sums)) : total(sums);
}

/// Four vectors of numbers as bytes.
uint8x16_t to_bytes(const int32x4_t (&numbers)[4]) {
  const int16x8_t low = vcombine_s16(vqmovn_s32(numbers[0]), vqmovn_s32(numbers[1]));
  const int16x8_t high = vcombine_s16(vqmovn_s32(numbers[2]), vqmovn_s32(numbers[3]));
  return vcombine_u8(vqmovun_s16(low), vqmovun_s16(high));
}

template <bool kTwoPlanes>
void filter_row(const AxisView& axis, const std::uint8_t* src, std::uint8_t* dst) {
  static constexpr std::uint8_t kThreeOfFour[] = {0,  1,  2,  4,  5,   6,   8,   9,
                                                  10, 12, 13, 14, 255, 255, 255, 255};
  const uint8x16_t three_of_four = vld1q_u8(kThreeOfFour);
  for (std::int64_t x = 0; x < axis.out_size; x += kTapGroup) {
    int32x4_t pixels[4];
    for (int i = 0; i < 4; ++i)
      pixels[i] = round_sums(filter_pixel<kTwoPlanes>(axis, src, x + i), axis.shift);
    vst1q_u8(dst + x * kChannels, vqtbl1q_u8(to_bytes(pixels), three_of_four));
  }
}

void horizontal(const HorizontalArgs& args) {
  if (args.axis->planes[1] != nullptr)
    filter_row<true>(*args.axis, args.src[0], args.dst[0]);
  else
    filter_row<false>(*args.axis, args.src[0], args.dst[0]);
}

template <bool kTwoPlanes>
void filter_block(const VerticalArgs& args, std::size_t offset) {
  const AxisView& axis = *args.axis;
  const std::int64_t begin = args.row * axis.taps;
  Sums sums;
  Sums low_sums;
  for (std::int32_t j = 0; j < axis.count[args.row]; ++j) {
    const uint8x16_t bytes = vld1q_u8(args.src[j] + offset);
    const int16x8_t low = widen(vget_low_u8(bytes));
    const int16x8_t high = widen(vget_high_u8(bytes));
    const auto add = [&](Sums& to, std::int16_t weight) {
      to.part[0] = vmlal_n_s16(to.part[0], vget_low_s16(low), weight);
      to.part[1] = vmlal_n_s16(to.part[1], vget_high_s16(low), weight);
      to.part[2] = vmlal_n_s16(to.part[2], vget_low_s16(high), weight);
      to.part[3] = vmlal_n_s16(to.part[3], vget_high_s16(high), weight);
    };
    add(sums, axis.planes[0][begin + j]);
    if constexpr (kTwoPlanes) add(low_sums, axis.planes[1][begin + j]);
  }
  for (int i = 0; i < 4; ++i) {
    if constexpr (kTwoPlanes) sums.part[i] = join_planes(sums.part[i], low_sums.part[i]);
    sums.part[i] = round_sums(sums.part[i], axis.shift);
  }
  vst1q_u8(args.dst + offset, to_bytes(sums.part));
}

struct Block {
  static constexpr std::size_t kBytes = kBlockBytes;
  template <bool kTwoPlanes>
  static void filter(const VerticalArgs& args, std::size_t offset) {
    filter_block<kTwoPlanes>(args, offset);
  }
};

}  // namespace

const ResizeLeaf kNeonLeaf = {
    .rows_at_once = 1, .horizontal = horizontal, .vertical = filter_row_in_blocks<Block>};

}  // namespace fovea::media
