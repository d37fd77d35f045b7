#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace fovea::media {

/// Bytes that libwebp needs at most for the prefix codes of a lossless image. A file may have
/// 65,536 groups of them, of which kilobytes stand for hundreds of megabytes; libwebp's own encoder
/// makes 2,600 at most. Reads the transforms and the image that says which group is used where,
/// each of at most a sixteenth of the pixels.
/// @param stream behind the header with the size: of a VP8L chunk, or of an ALPH chunk.
/// @param width_px at least 1, as height_px.
/// @return 0 if the stream is damaged up to there, or ends, or the image is too large for the
/// format. @throws as check_interrupt.
/// Source: RFC 9649, 4 and 6.
[[nodiscard]] std::size_t webp_code_bytes(std::span<const std::uint8_t> stream,
                                          std::int64_t width_px, std::int64_t height_px);

}  // namespace fovea::media
