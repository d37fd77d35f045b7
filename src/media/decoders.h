#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "fovea/options.h"
#include "media/decode_image.h"
#include "media/image.h"
#include "media/orientation.h"

// One pair of functions per file format; only decode_image.cpp calls them. Reading a header
// allocates nothing that depends on the image; when a decoder is called, the sides in the header
// have passed the limits. All throw Error(kCorruptData) for broken bytes, and what else they say.

namespace fovea::media {

/// An encoded image and its name for messages.
struct EncodedImage {
  std::span<const std::uint8_t> bytes;
  std::string_view name;
};

/// Contents of a header.
struct ImageHeader {
  ImageInfo info;  ///< sides as stored
  Orientation orientation = Orientation::kUpright;
};

/// Damaged metadata never makes a header fail. @throws also Error(kUnsupported) for sample
/// precisions other than 8 bits.
[[nodiscard]] ImageHeader read_jpeg_header(const EncodedImage& source);
[[nodiscard]] ImageHeader read_png_header(const EncodedImage& source);
[[nodiscard]] ImageHeader read_webp_header(const EncodedImage& source);

[[nodiscard]] Image decode_jpeg(const EncodedImage& source, const ImageInfo& info);
[[nodiscard]] Image decode_png(const EncodedImage& source, const ImageInfo& info,
                               const MediaOptions& options);
[[nodiscard]] Image decode_webp(const EncodedImage& source, const ImageInfo& info,
                                const MediaOptions& options);

/// An RGB image of that size, zeroed.
[[nodiscard]] Image make_image(const ImageInfo& info);

}  // namespace fovea::media
