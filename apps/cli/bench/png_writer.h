#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace fovea::cli {

/// Packs 8-bit RGB pixels into a PNG file without compressing them: a benchmark makes images
/// without an encoder, and still times a real decoder.
/// @param rgb height_px * width_px * 3 bytes, row-major; both sides >= 1 and < 2^31.
[[nodiscard]] std::vector<std::uint8_t> encode_png(std::span<const std::uint8_t> rgb,
                                                   std::int64_t width_px, std::int64_t height_px);

}  // namespace fovea::cli
