// An orientation is two strides: every step in the stored image is a step in the upright one.
#include "media/formats/image_writer.h"

namespace fovea::media {
namespace {

constexpr std::ptrdiff_t kChannels = 3;

/// Three stores: a call of memcpy for as many bytes takes longer than all else.
void copy_pixel(const std::uint8_t* from, std::uint8_t* to) noexcept {
  to[0] = from[0];
  to[1] = from[1];
  to[2] = from[2];
}

/// Stored rows that become columns are put in their places together, so that a cache line of the
/// upright image takes several pixels at a time.
constexpr std::int64_t kRowsTogether = 16;

}  // namespace

ImageWriter::ImageWriter(std::int64_t width_px, std::int64_t height_px, Orientation orientation,
                         std::vector<std::uint8_t> memory)
    : width_px_(width_px), height_px_(height_px) {
  const bool swaps = swaps_sides(orientation);
  const bool from_right = reverses_x(orientation);
  const bool from_bottom = reverses_y(orientation);

  image_.width_px = swaps ? height_px : width_px;
  image_.height_px = swaps ? width_px : height_px;
  const std::ptrdiff_t row_bytes = image_.width_px * kChannels;
  per_x_ = (swaps ? row_bytes : kChannels) * (from_right ? -1 : 1);
  per_y_ = (swaps ? kChannels : row_bytes) * (from_bottom ? -1 : 1);
  origin_ =
      (from_right ? (1 - width_px) * per_x_ : 0) + (from_bottom ? (1 - height_px) * per_y_ : 0);
  band_rows_ = rows_stay_rows() ? 0 : swaps ? kRowsTogether : 1;

  const auto image_bytes = static_cast<std::size_t>(width_px * height_px * kChannels);
  if (memory.capacity() < image_bytes) memory = {};  // rather than move what it holds
  image_.rgb = std::move(memory);
  image_.rgb.resize(image_bytes);
  band_.resize(static_cast<std::size_t>(band_rows_ * width_px * kChannels));
}

std::size_t ImageWriter::memory_bytes(std::int64_t width_px, std::int64_t height_px) noexcept {
  return static_cast<std::size_t>(width_px) * static_cast<std::size_t>(height_px + kRowsTogether) *
         kChannels;
}

std::uint8_t* ImageWriter::row(std::int64_t y) noexcept {
  if (rows_stay_rows()) return place(0, y);
  return band_.data() + y % band_rows_ * width_px_ * kChannels;
}

void ImageWriter::finish_row(std::int64_t y) noexcept {
  if (rows_stay_rows()) return;
  const std::int64_t num_rows = y % band_rows_ + 1;
  if (num_rows < band_rows_ && y + 1 < height_px_) return;
  for (std::int64_t x = 0; x < width_px_; ++x) {
    const std::uint8_t* from = band_.data() + x * kChannels;
    std::uint8_t* to = place(x, y + 1 - num_rows);
    for (std::int64_t i = 0; i < num_rows; ++i) {
      copy_pixel(from, to);
      from += width_px_ * kChannels;
      to += per_y_;
    }
  }
}

void ImageWriter::store(std::int64_t y, std::int64_t first_x, std::int64_t step_x,
                        std::int64_t count, const std::uint8_t* rgb) noexcept {
  std::uint8_t* to = place(first_x, y);
  for (std::int64_t i = 0; i < count; ++i, rgb += kChannels, to += step_x * per_x_)
    copy_pixel(rgb, to);
}

}  // namespace fovea::media
