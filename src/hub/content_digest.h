#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace fovea::hub {

/// The digest that the hub names a file by: the SHA-256 of a file in its large storage, or the
/// SHA-1 that git has of a small one. Source: huggingface_hub 2.4, "Understand caching"; Git, "Git
/// Objects".
class ContentDigest {
 public:
  /// @param etag of the file: 64 digits of SHA-256 or 40 of SHA-1; with others, as mirrors have
  /// them, matches() knows the length alone.
  /// @param size of the file, which is part of what git digests.
  ContentDigest(std::string etag, std::uint64_t size);

  void add(std::span<const std::byte> bytes);
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  /// Whether what was added is the file. Ends the object's use.
  [[nodiscard]] bool matches();
  /// Whether an etag is a digest.
  [[nodiscard]] static bool is_digest(std::string_view etag) noexcept;

 private:
  struct Free {
    void operator()(void* context) const noexcept;
  };
  std::string etag_;
  std::uint64_t size_ = 0;
  std::uint64_t bytes_ = 0;
  std::unique_ptr<void, Free> context_;  // of OpenSSL; null for others
};

}  // namespace fovea::hub
