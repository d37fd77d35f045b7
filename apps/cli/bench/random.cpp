// Random numbers for workloads.
#include "bench/random.h"

#include <algorithm>
#include <limits>

namespace fovea::cli {

std::uint64_t Random::next() noexcept {
  state_ += 0x9e3779b97f4a7c15U;  // 2^64 divided by the golden ratio
  std::uint64_t mixed = state_;
  mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9U;
  mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebU;
  return mixed ^ (mixed >> 31U);
}

double Random::uniform() noexcept { return static_cast<double>(next() >> 11U) * 0x1p-53; }

std::int64_t Random::between(std::int64_t min, std::int64_t max) noexcept {
  const std::uint64_t count = static_cast<std::uint64_t>(max - min) + 1;
  // Draws above the last multiple of `count` would favour the small remainders.
  const std::uint64_t usable = std::numeric_limits<std::uint64_t>::max() / count * count;
  std::uint64_t drawn = next();
  while (drawn >= usable) drawn = next();
  return min + static_cast<std::int64_t>(drawn % count);
}

void Random::fill(std::span<std::uint8_t> bytes) noexcept {
  while (!bytes.empty()) {
    std::uint64_t bits = next();
    const std::size_t count = std::min<std::size_t>(bytes.size(), sizeof(bits));
    for (std::uint8_t& byte : bytes.first(count)) {
      byte = static_cast<std::uint8_t>(bits);
      bits >>= 8U;
    }
    bytes = bytes.subspan(count);
  }
}

}  // namespace fovea::cli
