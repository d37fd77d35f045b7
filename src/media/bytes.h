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

}  // namespace fovea::media
