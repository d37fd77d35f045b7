#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "fovea/options.h"
#include "media/image.h"

namespace fovea::media {

enum class ImageFormat : std::uint8_t { kJpeg, kPng, kWebp, kBmp, kGif, kTiff, kAvif, kHeic };

/// The format that the first bytes of a file are those of; absent: it is no image.
[[nodiscard]] std::optional<ImageFormat> find_image_format(std::span<const std::uint8_t> bytes);

/// Tells the format from the first bytes of a file, never from its name.
/// @param name of the image, for messages.
/// @throws Error(kCorruptData) if there are no bytes, Error(kUnsupported) for any other format; the
/// message names it where it is a well-known one.
[[nodiscard]] ImageFormat detect_image_format(std::span<const std::uint8_t> bytes,
                                              std::string_view name);

/// The facts that a file header states, before any pixel is allocated.
struct ImageInfo {
  ImageFormat format = ImageFormat::kPng;
  std::int64_t width_px = 0;
  std::int64_t height_px = 0;
  /// Host memory that decode_image() takes at most beyond the encoded bytes, the image included. Of
  /// a lossless WebP file that ends too soon, its code tables are left out.
  std::size_t decode_bytes = 0;
  Margins margins = {};  ///< of the image that decode_image() returns
};

/// Reads the header of an encoded image and checks it against options.limits. Allocates no pixels.
/// The sides are those of the image that decode_image() returns: upright, if options.profile turns
/// images upright, and divided by `reduction`. The limits are those of the full size.
/// @param name of the image, for messages.
/// @param reduction one of kReductions (media/reduction.h). Of JPEG alone: others have full size.
/// @throws Error(kUnsupported) if the magic bytes are of no supported format (the message names the
/// format where it is a known one), Error(kCorruptData) if the header is broken,
/// Error(kInvalidArgument) if a limit is exceeded, with both numbers.
[[nodiscard]] ImageInfo probe_image(std::span<const std::uint8_t> bytes, std::string_view name,
                                    const MediaOptions& options, int reduction = 1);

/// Decodes an image to 8-bit RGB as the loader that options.profile names does: palette
/// expanded, grey replicated, 16-bit grey clipped and 16-bit colour cut to its high byte, CMYK by
/// Pillow's formula, first frame of an animation, no colour management; transparency composited on
/// options.background or ignored, image turned upright or not, by the rules of profile.h.
/// Checks the interrupt of the thread (core/interrupt.h) while it works.
/// @param reduction as probe_image.
/// @param memory of an image that is no longer needed, for this one. The first touch of new
/// memory is a third of the time that an image of 12 megapixels takes.
/// @throws as probe_image; Error(kCorruptData) for truncated or damaged pixel data,
/// Error(kInvalidArgument) for a JPEG whose scans are out of proportion to its size.
/// Source: docs/reference/image_resize.md, "Decoding to RGB".
[[nodiscard]] Image decode_image(std::span<const std::uint8_t> bytes, std::string_view name,
                                 const MediaOptions& options, int reduction = 1,
                                 std::vector<std::uint8_t> memory = {});

}  // namespace fovea::media
