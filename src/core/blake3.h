#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace fovea {

/// The BLAKE3 hash of bytes, of 32 bytes, without a key; read it with to_hex(). For names: one
/// thread, without vector instructions. Source: O'Connor, Aumasson, Neves, Wilcox-O'Hearn, "BLAKE3:
/// one function, fast everywhere", section 2.
[[nodiscard]] std::array<std::byte, 32> blake3(std::string_view bytes);

}  // namespace fovea
