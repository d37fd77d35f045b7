#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "media/image.h"
#include "media/orientation.h"

namespace fovea::media {

/// Takes the rows of an image as a file stores them and puts every pixel where it belongs in the
/// upright image, so that turning costs no second image.
class ImageWriter {
 public:
  /// @param width_px, height_px of the stored image, at least 1.
  /// @param memory for the image; what it holds stays until it is written over.
  ImageWriter(std::int64_t width_px, std::int64_t height_px, Orientation orientation,
              std::vector<std::uint8_t> memory = {});

  /// Host memory that a writer takes, its image included.
  [[nodiscard]] static std::size_t memory_bytes(std::int64_t width_px,
                                                std::int64_t height_px) noexcept;

  /// Memory of 3 * width_px bytes for stored row y. Rows come once each, from the first to the
  /// last, and finish_row() ends each of them.
  [[nodiscard]] std::uint8_t* row(std::int64_t y) noexcept;
  void finish_row(std::int64_t y) noexcept;

  /// Stores pixels of row y at once: `count` from first_x on, step_x apart, which rgb holds without
  /// gaps. For images whose rows come in pieces, instead of row() and finish_row().
  void store(std::int64_t y, std::int64_t first_x, std::int64_t step_x, std::int64_t count,
             const std::uint8_t* rgb) noexcept;

  /// The upright image; nothing may be called afterwards.
  [[nodiscard]] Image take() noexcept { return std::move(image_); }

 private:
  /// And run forwards: they are decoded in place.
  [[nodiscard]] bool rows_stay_rows() const noexcept { return per_x_ == 3; }
  [[nodiscard]] std::uint8_t* place(std::int64_t x, std::int64_t y) noexcept {
    return image_.rgb.data() + origin_ + x * per_x_ + y * per_y_;
  }

  std::int64_t width_px_;
  std::int64_t height_px_;
  Image image_;
  std::ptrdiff_t origin_;  ///< byte of the upright image that stored pixel (0, 0) goes to
  std::ptrdiff_t per_x_;   ///< bytes from a stored pixel to the next of its row
  std::ptrdiff_t per_y_;   ///< bytes from a stored pixel to the one below
  std::int64_t band_rows_;
  std::vector<std::uint8_t> band_;  ///< stored rows that have yet to be put in their places
};

}  // namespace fovea::media
