// Rotary embedding on the CPU.
#include "ops/cpu/rowwise/rowwise.h"

#include <array>
#include <cmath>

#include "device/cpu/cpu_device.h"
#include "ops/cpu/rowwise/row_loop.h"

namespace fovea::cpu {

namespace {

/// A cosine and a sine cost about as much as this many floats copied.
constexpr std::int64_t kFloatsPerAngle = 32;

void angles_of_row(const std::int32_t* position, const float* inv_freq, std::int64_t cols,
                   float* cos, float* sin) {
  const std::array coordinates{static_cast<float>(position[0]), static_cast<float>(position[1])};
  for (std::int64_t j = 0; j < cols; ++j) {
    const float angle = coordinates[j < cols / 2 ? 0 : 1] * inv_freq[j];  // y, then x
    cos[j] = std::cos(angle);
    sin[j] = std::sin(angle);
  }
}

}  // namespace

void rope_angles(Stream& stream, const ops::RopeAnglesArgs& args) {
  static_cast<CpuStream&>(stream).submit([args](ThreadPool& pool) {
    const std::int64_t cols = args.inv_freq.shape[0];
    for_row_ranges(pool, count_live(args.rows, args.positions.shape[0]), cols * kFloatsPerAngle,
                   [&](std::int64_t first, std::int64_t last) {
                     for (std::int64_t r = first; r < last; ++r) {
                       angles_of_row(
                           args.positions.as<std::int32_t>() + 4 * r, args.inv_freq.as<float>(),
                           cols, args.cos.as<float>() + r * cols, args.sin.as<float>() + r * cols);
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
