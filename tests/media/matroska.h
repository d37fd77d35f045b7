#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace fovea::test {

/// A Matroska file of PNG images, 10 per second: a header that says any size, and packets that say
/// any other.
/// @param first_ms time of the first image.
[[nodiscard]] std::vector<std::uint8_t> matroska_of_png(
    int width, int height, std::span<const std::vector<std::uint8_t>> packets, int first_ms = 0);

}  // namespace fovea::test
