#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "fovea/options.h"
#include "media/decode_image.h"
#include "media/image.h"
#include "media/orientation.h"

// One pair of functions per file format; only decode_image.cpp calls them. Reading a header
// allocates nothing that depends on the image; when a decoder is called, the sides in the header
// and the memory that it asks for have passed the limits. All throw Error(kCorruptData) for broken
// bytes, and what else they say. Decoders check the interrupt of the thread as rows are completed,
// and throw std::bad_alloc if there is no memory.

namespace fovea::media {

/// An encoded image and its name for messages.
struct EncodedImage {
  std::span<const std::uint8_t> bytes;
  std::string_view name;
};

/// Contents of a header.
struct ImageHeader {
  ImageInfo info;  ///< sides and margins as stored
  Orientation orientation = Orientation::kUpright;
  int reduction = 1;  ///< what decode_jpeg divides the sides by; `info` is of the result
  bool turned_by_reader = false;  ///< upright whatever the profile: Pillow's reader turns it
};

/// Part of ImageInfo::decode_bytes for what a library keeps whatever the image: tables, windows.
inline constexpr std::size_t kDecoderBytes = std::size_t{2} << 20;

/// Damaged metadata never makes a header fail. @throws also Error(kUnsupported) for sample
/// precisions other than 8 bits.
[[nodiscard]] ImageHeader read_jpeg_header(const EncodedImage& source, int reduction);
[[nodiscard]] ImageHeader read_png_header(const EncodedImage& source);
[[nodiscard]] ImageHeader read_webp_header(const EncodedImage& source);
[[nodiscard]] ImageHeader read_bmp_header(const EncodedImage& source);

/// Decodes to RGB, turned by the orientation of the header. Every pixel is written, so that nothing
/// of what `memory` held is left.
/// @throws also Error(kInvalidArgument) for more scans, or more work in scans, than a decoder does.
[[nodiscard]] Image decode_jpeg(const EncodedImage& source, const ImageHeader& header,
                                std::vector<std::uint8_t> memory);
[[nodiscard]] Image decode_png(const EncodedImage& source, const ImageHeader& header,
                               const MediaOptions& options, std::vector<std::uint8_t> memory);
[[nodiscard]] Image decode_webp(const EncodedImage& source, const ImageHeader& header,
                                const MediaOptions& options, std::vector<std::uint8_t> memory);
[[nodiscard]] Image decode_bmp(const EncodedImage& source, const ImageHeader& header,
                               const MediaOptions& options, std::vector<std::uint8_t> memory);

}  // namespace fovea::media
