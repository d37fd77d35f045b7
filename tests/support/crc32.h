#pragma once

#include <cstdint>
#include <span>

namespace fovea::test {

/// CRC-32 as in ZIP archives: what reference data holds of bytes that are too many to store.
inline std::int64_t crc32_of(std::span<const std::uint8_t> bytes) {
  std::uint32_t crc = ~std::uint32_t{0};
  for (const std::uint8_t byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320u : 0u);
  }
  return std::int64_t{~crc};
}

}  // namespace fovea::test
