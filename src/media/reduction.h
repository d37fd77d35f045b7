#pragma once

#include <array>
#include <cstdint>

// Decoding at a fraction of the size. The inverse transform of JPEG can make 4 x 4, 2 x 2 or 1 x 1
// pixels of a block instead of 8 x 8, each the mean of those that it stands for. libjpeg-turbo has
// fast code for these three; the other eighths take longer than full size.

namespace fovea::media {

/// The numbers by which the sides of an image can be divided when it is decoded.
inline constexpr std::array kReductions{1, 2, 4, 8};

/// A side of a reduced image.
struct ReducedSide {
  std::int64_t side_px = 0;  ///< rounded up
  double margin_px = 0;      ///< what the last pixel has too much
};

[[nodiscard]] constexpr ReducedSide reduced(std::int64_t side_px, int reduction) noexcept {
  const std::int64_t whole = (side_px + reduction - 1) / reduction;
  return {whole, static_cast<double>(whole * reduction - side_px) / reduction};
}

/// The largest reduction that leaves both sides of an image at least 1.75 times as long as needed,
/// so that the filter of the resize still decides what is left of fine detail. 1 where none does,
/// and for a needed size of 0. At 2, rows differ a little less from those of full size, but the
/// 4000 or 4032 columns of common cameras would not be halved for 1024.
/// Source: docs/preprocessing.md, "Scaled decoding".
[[nodiscard]] constexpr int choose_reduction(std::int64_t width_px, std::int64_t height_px,
                                             std::int64_t needed_width_px,
                                             std::int64_t needed_height_px) noexcept {
  if (needed_width_px == 0 || needed_height_px == 0) return 1;
  int chosen = 1;
  for (const int reduction : kReductions) {
    const std::int64_t quarters = 7 * reduction;
    if (4 * width_px >= quarters * needed_width_px && 4 * height_px >= quarters * needed_height_px)
      chosen = reduction;
  }
  return chosen;
}

}  // namespace fovea::media
