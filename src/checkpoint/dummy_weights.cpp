// Pseudo-random weights, one hash per element and no state, so that the loop runs in SIMD: a tower
// of 600 million parameters takes about a second.
#include "checkpoint/dummy_weights.h"

#include "core/fnv1a.h"
#include "fovea/tower/core/dtype.h"

namespace fovea::checkpoint {

namespace {

/// Sum of four independent uniform bytes: mean and 1 / standard deviation.
constexpr int kByteSumMean = 510;
constexpr float kInverseByteSumDeviation = 0.0067658751f;  // sqrt(12 / (4 * (256^2 - 1)))

/// As mix64, for 32 bits.
/// Source: docs/reference/README.md, "Hash functions" (MurmurHash3, its last step).
constexpr std::uint32_t mix32(std::uint32_t x) noexcept {
  x = (x ^ (x >> 16)) * 0x85ebca6bu;
  x = (x ^ (x >> 13)) * 0xc2b2ae35u;
  return x ^ (x >> 16);
}

}  // namespace

void fill_dummy_weights(std::uint64_t seed, std::string_view name, float mean,
                        std::span<std::uint16_t> out) noexcept {
  const std::uint64_t key = mix64(seed ^ mix64(fnv1a(name)));
  const auto low = static_cast<std::uint32_t>(key);
  const auto high = static_cast<std::uint32_t>(key >> 32);
  const float scale = kDummyDeviation * kInverseByteSumDeviation;
  std::uint16_t* const to = out.data();
  const std::size_t count = out.size();
  for (std::size_t i = 0; i < count; ++i) {
    // Two rounds: with one, the streams of two names would be shifted copies of each other.
    const std::uint32_t bits = mix32(mix32(static_cast<std::uint32_t>(i) ^ low) + high);
    const std::uint32_t pairs = (bits & 0x00ff00ffu) + ((bits >> 8) & 0x00ff00ffu);
    const int sum = static_cast<int>((pairs + (pairs >> 16)) & 0xffffu);
    to[i] = f32_to_bf16(mean + scale * static_cast<float>(sum - kByteSumMean));
  }
}

}  // namespace fovea::checkpoint
