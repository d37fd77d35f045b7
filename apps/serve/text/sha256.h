#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

namespace fovea::serve {

using Sha256Digest = std::array<std::byte, 32>;

/// Source: FIPS 180-4.
[[nodiscard]] Sha256Digest sha256(std::string_view bytes);

/// The same as 64 hexadecimal digits.
[[nodiscard]] std::string sha256_hex(std::string_view bytes);

}  // namespace fovea::serve
