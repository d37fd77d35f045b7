#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace fovea::test {

/// The bytes of a safetensors file with any header, valid or not.
inline std::string safetensors_bytes(std::string_view header, std::string_view data = "") {
  std::string bytes;
  for (unsigned shift = 0; shift < 64; shift += 8)
    bytes += static_cast<char>(static_cast<std::uint64_t>(header.size()) >> shift);
  return bytes.append(header).append(data);
}

/// As safetensors_bytes, with `data_bytes` zero bytes of data.
inline std::string safetensors_bytes(std::string_view header, std::size_t data_bytes) {
  return safetensors_bytes(header, std::string(data_bytes, '\0'));
}

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

}  // namespace fovea::test
