#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <string_view>

namespace fovea::media {

/// How the samples of a coded image are to be understood, as its bitstream says.
struct HevcColors {
  int matrix = 2;  ///< ITU-T H.273, 8.3; 2: not said
  int primaries = 2;
  bool is_full_range = false;
  bool is_grey = false;
  bool is_420 = false;  ///< chroma has half the width and half the height
  int num_bits = 8;
};

/// The first image that was decoded.
struct HevcImage {
  HevcColors colors;
  int width_px = 0;
  int height_px = 0;
};

/// Limits of coded images.
struct HevcLimits {
  std::int64_t pixels;         ///< each
  std::int64_t pixels_in_all;  ///< all together
  std::int64_t bits;           ///< each sample
};

/// While it lives, libheif decodes HEVC on this thread by libde265 in a way of ours, and no other
/// codec:
/// - on the calling thread. libheif's own decoder starts one, which a decoder process may not.
/// - Samples leave unconverted: planes R, G and B of the image hold Y, Cb and Cr, those of chroma
///   repeated. Versions of libheif differ in what they convert, and when.
/// - Coded images are refused before memory is taken if one or all of them have too many pixels.
class HevcScope {
 public:
  /// @param name for messages.
  HevcScope(std::string_view name, const HevcLimits& limits);
  ~HevcScope();
  HevcScope(const HevcScope&) = delete;
  HevcScope& operator=(const HevcScope&) = delete;

  /// Makes the decoder known to libheif. Once per process, before the first scope.
  static void register_decoder();

  /// Nothing before there is one.
  [[nodiscard]] const std::optional<HevcImage>& first_image() const noexcept { return first_; }

  /// @throws what a decoder of this scope met, which libheif knows as an error of some kind.
  void rethrow() const;

 private:
  friend class HevcDecoder;

  std::string_view name_;
  HevcLimits limits_;
  std::optional<HevcImage> first_;
  std::exception_ptr failure_;
  HevcScope* before_;
};

}  // namespace fovea::media
