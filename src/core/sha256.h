#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace fovea {

using Sha256Digest = std::array<std::byte, 32>;

/// The SHA-256 of bytes that come piece by piece. Source: FIPS 180-4, by OpenSSL.
class Sha256 {
 public:
  /// @throws Error(kUnsupported) if the library refuses, Error(kOutOfMemory).
  Sha256();

  void add(std::span<const std::byte> bytes);
  void add(std::string_view text) { add(std::as_bytes(std::span(text.data(), text.size()))); }
  /// Ends the object's use, as does hex().
  [[nodiscard]] Sha256Digest digest();
  /// The digest as 64 lower-case digits.
  [[nodiscard]] std::string hex();

 private:
  struct Free {
    void operator()(void* context) const noexcept;
  };
  std::unique_ptr<void, Free> context_;  // of OpenSSL
};

/// The SHA-256 of bytes that are all there. @throws as Sha256.
[[nodiscard]] Sha256Digest sha256(std::string_view bytes);
[[nodiscard]] std::string sha256_hex(std::string_view bytes);

/// Bytes as two lower-case hexadecimal digits each.
[[nodiscard]] std::string to_hex(std::span<const std::byte> bytes);

}  // namespace fovea
