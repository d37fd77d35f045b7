#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "media/plugins/hevc_decoder.h"

namespace fovea::media {

/// A row of pixels, as samples of the image's depth.
struct HeicRow {
  const std::uint16_t* luma;
  const std::uint16_t* cb;  ///< of grey as luma, and not read
  const std::uint16_t* cr;
};

/// Makes 8-bit RGB of Y, Cb and Cr as libheif 1.23 does, which is in pillow-heif 1.8, and Pillow
/// behind it, whatever the version at hand.
/// Source: docs/reference/image_resize.md, "HEIC".
class HeicConverter {
 public:
  /// @param name for the message. @throws Error(kUnsupported) for matrix coefficients that are not
  /// those of a linear transform.
  HeicConverter(const HevcColors& colors, bool has_alpha, std::string_view name);

  /// @param rgb 3 * count bytes.
  void convert(const HeicRow& row, std::size_t count, std::uint8_t* rgb) const noexcept;

 private:
  enum class Kind : std::uint8_t { kGrey, kClippedGrey, kIdentity, kYCgCo, kFractions, kFloats };

  void convert_in_fractions(const HeicRow& row, std::size_t count,
                            std::uint8_t* rgb) const noexcept;
  void convert_in_floats(const HeicRow& row, std::size_t count, std::uint8_t* rgb) const noexcept;

  Kind kind_;
  HevcColors colors_;
  int surplus_bits_;
  float red_of_cr_ = 0;
  float green_of_cb_ = 0;
  float green_of_cr_ = 0;
  float blue_of_cb_ = 0;
};

}  // namespace fovea::media
