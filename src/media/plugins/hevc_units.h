#pragma once

#include <cstdint>
#include <string_view>

#include "media/bytes.h"

namespace fovea::media {

/// The cost of one coded image, as its NAL units tell it before any is decoded.
class HevcUnits {
 public:
  /// @param unit without its length, and with emulation prevention bytes.
  /// @throws Error(kCorruptData) for parameters of a sequence that end too early.
  void add(Bytes unit, std::string_view name);

  /// Pixels of a picture of the largest sequence; 0 before there is one.
  [[nodiscard]] std::int64_t picture_pixels() const noexcept { return picture_pixels_; }
  /// Bits of a sample, the most of all sequences; 0 before there is one.
  [[nodiscard]] std::int64_t num_bits() const noexcept { return num_bits_; }
  [[nodiscard]] std::int64_t num_pictures() const noexcept { return num_pictures_; }

 private:
  std::int64_t picture_pixels_ = 0;
  std::int64_t num_bits_ = 0;
  std::int64_t num_pictures_ = 0;
};

}  // namespace fovea::media
