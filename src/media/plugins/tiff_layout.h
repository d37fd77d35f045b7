#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "media/orientation.h"
#include "media/plugins/tiff_file.h"

namespace fovea::media {

/// How the samples of a pixel become a colour.
enum class TiffColor : std::uint8_t {
  kGrey,         ///< of at most 8 bits, scaled to 8
  kClippedGrey,  ///< integers of 12, 16 or 32 bits, or floats, clipped to 0 .. 255
  kPalette,
  kRgb,  ///< 8 bits, or the high bytes of 16
  kCmyk,
  kByLibrary,  ///< libtiff makes RGB of YCbCr
};

enum class TiffAlpha : std::uint8_t {
  kNone,
  kOfGrey,  ///< as Pillow's modes LA and PA
  kStraight,
  kPremultiplied
};

/// The first image of a TIFF file. Chunks are its strips or tiles.
struct TiffLayout {
  std::int64_t width_px = 0;
  std::int64_t height_px = 0;
  Orientation orientation = Orientation::kUpright;
  TiffColor color = TiffColor::kGrey;
  TiffAlpha alpha = TiffAlpha::kNone;
  bool white_is_zero = false;   ///< of kGrey
  bool is_signed = false;       ///< of kClippedGrey
  bool is_float = false;        ///< likewise
  bool swaps_bytes = false;     ///< likewise: Pillow takes the samples in the wrong order
  std::size_t bits = 8;         ///< of a sample
  std::size_t num_samples = 1;  ///< of a pixel, those that mean nothing included
  bool in_planes = false;       ///< each sample has chunks of its own
  bool tiled = false;
  std::int64_t chunk_width_px = 0;
  std::int64_t chunk_height_px = 0;
  std::size_t chunk_bytes = 0;             ///< of a decoded chunk, of one plane if there are such
  std::array<std::uint8_t, 768> colors{};  ///< RGB by index, of kPalette

  /// Bytes of a row of a chunk.
  [[nodiscard]] std::size_t row_bytes() const noexcept {
    const std::size_t samples = in_planes ? 1 : num_samples;
    return (static_cast<std::size_t>(chunk_width_px) * samples * bits + 7) / 8;
  }
  [[nodiscard]] std::int64_t num_chunks() const noexcept {
    return ((width_px - 1) / chunk_width_px + 1) * ((height_px - 1) / chunk_height_px + 1) *
           (in_planes ? static_cast<std::int64_t>(num_samples) : 1);
  }
};

/// Reads the first directory of a TIFF file, and sets libtiff up for what is to be read.
/// @throws Error(kUnsupported) for layouts of samples and compressions that are not read,
/// Error(kCorruptData) if fields contradict each other.
/// Source: docs/reference/image_resize.md, "TIFF".
[[nodiscard]] TiffLayout read_tiff_layout(const TiffFile& file);

}  // namespace fovea::media
