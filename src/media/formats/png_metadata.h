#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "media/orientation.h"

// Ancillary chunks of a PNG file that change how its pixels look. libpng passes over all of them.

namespace fovea::media {

inline constexpr std::size_t kPngSignatureBytes = 8;
inline constexpr std::size_t kPngChunkFrameBytes = 12;  ///< length, type and CRC of a chunk

/// From the EXIF chunk, a text that holds EXIF in hex digits, or the XMP text, on either side of
/// the pixels.
/// @param file a PNG file, signature included; may end anywhere. @param name as below.
/// @throws Error(kInvalidArgument) if such texts inflate to more than 64 MiB, as in Pillow.
[[nodiscard]] Orientation read_png_orientation(std::span<const std::uint8_t> file,
                                               std::string_view name);

/// Payload of the tRNS chunk, a view of the file; nothing if there is none.
/// @param name of the image, for messages.
/// @throws Error(kCorruptData) if the chunk has a wrong checksum.
[[nodiscard]] std::optional<std::span<const std::uint8_t>> read_png_transparency(
    std::span<const std::uint8_t> file, std::string_view name);

}  // namespace fovea::media
