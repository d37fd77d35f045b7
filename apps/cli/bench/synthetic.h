#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace fovea::cli {

/// Pseudo-random numbers that depend on the seed alone, not on compiler or platform as the
/// distributions of the standard library do. Source: SplitMix64, Steele, Lea and Flood, "Fast
/// splittable pseudorandom number generators" (2014), with the constants of java.util's version.
class Random {
 public:
  explicit Random(std::uint64_t seed) noexcept : state_(seed) {}

  /// 64 random bits.
  [[nodiscard]] std::uint64_t next() noexcept;
  /// Uniform in [0, 1), a multiple of 2^-53.
  [[nodiscard]] double uniform() noexcept;
  /// Uniform in [min, max], without bias. @param max >= min, less than 2^63 above it.
  [[nodiscard]] std::int64_t between(std::int64_t min, std::int64_t max) noexcept;
  /// Fills with random bytes: next() after next(), lowest byte first.
  void fill(std::span<std::uint8_t> bytes) noexcept;

 private:
  std::uint64_t state_;
};

/// Packs 8-bit RGB pixels into a PNG file without compressing them: a benchmark makes images
/// without an encoder, and still times a real decoder.
/// @param rgb height_px * width_px * 3 bytes, row-major; both sides >= 1 and < 2^31.
[[nodiscard]] std::vector<std::uint8_t> encode_png(std::span<const std::uint8_t> rgb,
                                                   std::int64_t width_px, std::int64_t height_px);

}  // namespace fovea::cli
