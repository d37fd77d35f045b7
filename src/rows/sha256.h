#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace fovea {

/// The SHA-256 of bytes that come piece by piece. Source: FIPS 180-4, by OpenSSL.
class Sha256 {
 public:
  /// @throws Error(kUnsupported) if the library refuses, Error(kOutOfMemory).
  Sha256();

  void add(std::span<const std::byte> bytes);
  void add(std::string_view text) { add(std::as_bytes(std::span(text.data(), text.size()))); }
  /// 64 lower-case digits. Ends the object's use.
  [[nodiscard]] std::string hex();

 private:
  struct Free {
    void operator()(void* context) const noexcept;
  };
  std::unique_ptr<void, Free> context_;  // of OpenSSL
};

}  // namespace fovea
