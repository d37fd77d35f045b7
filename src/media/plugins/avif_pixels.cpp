// YUV to RGB by libavif and libyuv. For 8 bits per sample all versions agree. For 10 and 12 bits,
// libavif 1.4, which is in Pillow 13, drops the low bits first where libyuv has no function for
// them; so this is done here, whatever the version.
#include "media/plugins/avif_pixels.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <utility>

#include "core/check.h"

namespace fovea::media {
namespace {

constexpr std::uint32_t kBytesBits = 8;

bool is_grey(const avifImage& image) noexcept {
  return image.yuvFormat == AVIF_PIXEL_FORMAT_YUV400;
}

bool is_twelve_bit_420(const avifImage& image) noexcept {
  return image.depth == 12 && image.yuvFormat == AVIF_PIXEL_FORMAT_YUV420;
}

/// Whether colours are made of the high 8 bits of the samples.
bool drops_color_bits(const avifImage& image, bool has_alpha) noexcept {
  if (image.depth <= kBytesBits) return false;
  if (is_grey(image)) return has_alpha;
  return !has_alpha || !(image.depth == 10 || is_twelve_bit_420(image));
}

/// Whether alpha is its high 8 bits rather than rounded to 8.
bool drops_alpha_bits(const avifImage& image) noexcept {
  return !is_grey(image) && !is_twelve_bit_420(image);
}

struct PlaneSize {
  std::size_t width;
  std::size_t height;
};

PlaneSize plane_size(const avifImage& image, int plane) noexcept {
  if (plane == AVIF_CHAN_Y) return {image.width, image.height};
  if (is_grey(image)) return {0, 0};
  const bool halves_width = image.yuvFormat != AVIF_PIXEL_FORMAT_YUV444;
  const bool halves_height = image.yuvFormat == AVIF_PIXEL_FORMAT_YUV420;
  return {(std::size_t{image.width} + (halves_width ? 1 : 0)) / (halves_width ? 2 : 1),
          (std::size_t{image.height} + (halves_height ? 1 : 0)) / (halves_height ? 2 : 1)};
}

std::uint16_t wide_sample(const std::uint8_t* row, std::size_t x) noexcept {
  std::uint16_t sample = 0;
  std::memcpy(&sample, row + 2 * x, sizeof(sample));
  return sample;
}

/// The colours of an image with 8 bits per sample.
class ByteImage {
 public:
  explicit ByteImage(const avifImage& wide)
      : image_(avifImageCreate(wide.width, wide.height, 8, wide.yuvFormat), avifImageDestroy) {
    if (!image_) throw std::bad_alloc();
    image_->yuvRange = wide.yuvRange;
    image_->colorPrimaries = wide.colorPrimaries;
    image_->transferCharacteristics = wide.transferCharacteristics;
    image_->matrixCoefficients = wide.matrixCoefficients;
    image_->imageOwnsYUVPlanes = AVIF_FALSE;
    for (std::size_t plane = 0; plane < planes_.size(); ++plane) copy_plane(wide, plane);
  }

  [[nodiscard]] const avifImage& get() const noexcept { return *image_; }

 private:
  void copy_plane(const avifImage& wide, std::size_t plane) {
    const PlaneSize size = plane_size(wide, static_cast<int>(plane));
    if (size.width == 0) return;
    std::vector<std::uint8_t>& bytes = planes_[plane];
    bytes.resize(size.width * size.height);
    const std::uint32_t surplus = wide.depth - kBytesBits;
    for (std::size_t y = 0; y < size.height; ++y) {
      const std::uint8_t* const row = wide.yuvPlanes[plane] + y * wide.yuvRowBytes[plane];
      for (std::size_t x = 0; x < size.width; ++x)
        bytes[y * size.width + x] = static_cast<std::uint8_t>(wide_sample(row, x) >> surplus);
    }
    image_->yuvPlanes[plane] = bytes.data();
    image_->yuvRowBytes[plane] = static_cast<std::uint32_t>(size.width);
  }

  std::array<std::vector<std::uint8_t>, 3> planes_;
  std::unique_ptr<avifImage, decltype(&avifImageDestroy)> image_;
};

/// The view of pixels that libavif wants.
avifRGBImage describe(const avifImage& image, bool has_alpha, std::uint8_t* pixels) {
  avifRGBImage rgb;
  avifRGBImageSetDefaults(&rgb, &image);
  rgb.depth = kBytesBits;
  rgb.format = has_alpha ? AVIF_RGB_FORMAT_RGBA : AVIF_RGB_FORMAT_RGB;
  rgb.pixels = pixels;
  rgb.rowBytes = image.width * static_cast<std::uint32_t>(num_avif_channels(has_alpha));
  return rgb;
}

std::uint8_t byte_of(std::uint16_t alpha, const avifImage& image) noexcept {
  if (drops_alpha_bits(image))
    return static_cast<std::uint8_t>(alpha >> (image.depth - kBytesBits));
  const std::uint32_t most = (1u << image.depth) - 1;  // odd: nothing lies between two bytes
  return static_cast<std::uint8_t>((alpha * 255u + most / 2) / most);
}

/// For samples of more than 8 bits; libavif has filled in others.
void set_alpha(const avifImage& image, std::span<std::uint8_t> pixels) {
  for (std::size_t y = 0; y < image.height; ++y) {
    const std::uint8_t* const row = image.alphaPlane + y * image.alphaRowBytes;
    for (std::size_t x = 0; x < image.width; ++x)
      pixels[(y * image.width + x) * 4 + 3] = byte_of(wide_sample(row, x), image);
  }
}

}  // namespace

void check_avif(avifResult result, std::string_view name) {
  if (result == AVIF_RESULT_OUT_OF_MEMORY) throw std::bad_alloc();
  FOVEA_CHECK(result == AVIF_RESULT_OK, kCorruptData, name,
              ": cannot decode AVIF: ", avifResultToString(result));
}

std::size_t avif_pixel_bytes(const avifImage& image, bool has_alpha) noexcept {
  const std::size_t pixels = std::size_t{image.width} * image.height;
  std::size_t bytes = pixels * num_avif_channels(has_alpha);
  if (drops_color_bits(image, has_alpha))
    for (int plane = 0; plane < 3; ++plane) {
      const PlaneSize size = plane_size(image, plane);
      bytes += size.width * size.height;
    }
  return bytes;
}

std::vector<std::uint8_t> avif_pixels(const avifImage& image, bool has_alpha, std::string_view name,
                                      std::vector<std::uint8_t> memory) {
  std::vector<std::uint8_t> pixels = std::move(memory);
  pixels.resize(std::size_t{image.width} * image.height * num_avif_channels(has_alpha));
  avifRGBImage rgb = describe(image, has_alpha, pixels.data());
  const bool sets_alpha = has_alpha && image.depth > kBytesBits;
  if (sets_alpha) rgb.alphaPremultiplied = image.alphaPremultiplied;  // divided below
  if (drops_color_bits(image, has_alpha))
    check_avif(avifImageYUVToRGB(&ByteImage(image).get(), &rgb), name);
  else
    check_avif(avifImageYUVToRGB(&image, &rgb), name);
  if (!sets_alpha) return pixels;
  set_alpha(image, pixels);
  if (image.alphaPremultiplied != 0) check_avif(avifRGBImageUnpremultiplyAlpha(&rgb), name);
  return pixels;
}

}  // namespace fovea::media
