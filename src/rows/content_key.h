#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/sha256.h"
#include "fovea/media.h"

namespace fovea {

/// What rows depend on besides the content of their item. Texts that are empty are left out.
struct ContentFields {
  std::string_view model;  ///< fingerprint of the weights and of what they compute in
  Modality modality = Modality::kImage;
  std::string_view options = "{}";        ///< JSON: all that preprocessing and output depend on
  std::string_view adapter = {};          ///< fingerprint of what is added to the weights
  std::vector<std::uint64_t> shape = {};  ///< of the content, if that is not an encoded file
  std::string_view element = {};          ///< of the content: "u8", "f32"; as above
};

/// The key of an item: a SHA-256 over a magic of 16 bytes and the fields. Each is one byte of tag,
/// eight of length, little-endian, and its bytes, in the order of their tags:
///   1 model   2 modality   3 options, canonical JSON   4 adapter
///   5 shape, 8 bytes each, little-endian   6 element   7 content
/// JSON is made canonical: keys in the order of their bytes, no blanks, numbers in the shortest
/// form that reads back as the same.
class ContentKey {
 public:
  /// @param fields whose options are valid JSON. @param content_bytes that add() will be called
  /// with, in sum.
  ContentKey(const ContentFields& fields, std::uint64_t content_bytes);

  void add(std::span<const std::byte> content) {
    left_ -= content.size();
    hash_.add(content);
  }
  /// 64 hexadecimal digits. @throws Error(kInternal) if there was more or less content.
  [[nodiscard]] std::string hex();

 private:
  void begin_field(std::uint8_t tag, std::uint64_t bytes);
  void add_text(std::uint8_t tag, std::string_view text);

  Sha256 hash_;
  std::uint64_t left_;
};

}  // namespace fovea
