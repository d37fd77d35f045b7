// Rotary embedding on the CPU.
#include "ops/cpu/rowwise/rowwise.h"

#include <cmath>

#include "device/cpu/cpu_device.h"
#include "ops/cpu/rowwise/row_loop.h"

namespace fovea::cpu {

namespace {

/// A cosine and a sine cost about as much as this many floats copied.
constexpr std::int64_t kFloatsPerAngle = 32;

/// Angle j of a row, as rope_angles defines it.
float angle_of(const std::int32_t* position, const ConstTensorView& inv_freq, std::int64_t j) {
  const auto* const frequencies = inv_freq.as<float>();
  const auto coordinate = [&](std::int64_t axis) { return static_cast<float>(position[axis]); };
  if (inv_freq.shape.rank() == 1) {
    return coordinate(j < inv_freq.shape[0] / 2 ? 0 : 1) * frequencies[j];  // y, then x
  }
  float sum = 0;
  for (std::int64_t axis = 0; axis < inv_freq.shape[0]; ++axis) {
    sum += coordinate(axis) * frequencies[axis * inv_freq.shape[1] + j];
  }
  return sum;
}

void angles_of_row(const std::int32_t* position, const ConstTensorView& inv_freq, std::int64_t cols,
                   float* cos, float* sin) {
  for (std::int64_t j = 0; j < cols; ++j) {
    const float angle = angle_of(position, inv_freq, j);
    cos[j] = std::cos(angle);
    sin[j] = std::sin(angle);
  }
}

}  // namespace

void rope_angles(Stream& stream, const ops::RopeAnglesArgs& args) {
  static_cast<CpuStream&>(stream).submit([args](ThreadPool& pool) {
    const std::int64_t cols = args.cos.shape[1];
    for_row_ranges(pool, count_live(args.rows, args.positions.shape[0]), cols * kFloatsPerAngle,
                   [&](std::int64_t first, std::int64_t last) {
                     for (std::int64_t r = first; r < last; ++r) {
                       angles_of_row(args.positions.as<std::int32_t>() + 4 * r, args.inv_freq, cols,
                                     args.cos.as<float>() + r * cols,
                                     args.sin.as<float>() + r * cols);
                     }
                   });
  });
}

void rotate(Stream& stream, const ops::HeadAttentionArgs& args, RotateHeads rotate_heads) {
  static_cast<CpuStream&>(stream).submit([args, rotate_heads](ThreadPool& pool) {
    const std::int64_t width = args.num_heads * args.head_dim;
    const std::int64_t half = args.head_dim / 2;
    for_row_ranges(pool, count_live(args.sequences.rows, args.qkv.shape[0]), 2 * width,
                   [&](std::int64_t first, std::int64_t last) {
                     for (std::int64_t r = first; r < last; ++r) {
                       // q and k are neighbours: 2 * num_heads heads in one go
                       rotate_heads(
                           args.qkv.as<float>() + r * 3 * width, args.cos.as<float>() + r * half,
                           args.sin.as<float>() + r * half, 2 * args.num_heads, args.head_dim);
                     }
                   });
  });
}

}  // namespace fovea::cpu
