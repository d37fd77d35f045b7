#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace fovea::serve {

using Sha256Digest = std::array<std::byte, 32>;

/// Source: FIPS 180-4.
[[nodiscard]] Sha256Digest sha256(std::string_view bytes);

/// Bytes as two lower-case hexadecimal digits each.
[[nodiscard]] std::string to_hex(std::span<const std::byte> bytes);

/// sha256 as 64 hexadecimal digits.
[[nodiscard]] std::string sha256_hex(std::string_view bytes);

}  // namespace fovea::serve
