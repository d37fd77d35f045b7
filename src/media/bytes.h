#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace fovea::media {

/// A part of an encoded file.
using Bytes = std::span<const std::uint8_t>;

/// The same bytes as characters, for comparisons with magic words.
[[nodiscard]] inline std::string_view text_of(Bytes bytes) noexcept {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The first 4 bytes as a number, most significant byte first.
[[nodiscard]] constexpr std::uint32_t big_endian_u32(Bytes bytes) noexcept {
  return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 |
         std::uint32_t{bytes[2]} << 8 | bytes[3];
}

}  // namespace fovea::media
