// HEIC by libheif, with libde265: the image that a file names, turned and cropped as the file says.
// Its header is read without decoding. An image, or a tile of one, is decoded at one go, by the
// calling thread.
#include <libde265/de265.h>
#include <libheif/heif.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/interrupt.h"
#include "media/formats/image_writer.h"
#include "media/plugins/heic_items.h"
#include "media/plugins/heic_pixels.h"
#include "media/plugins/hevc_decoder.h"
#include "media/plugins/image_plugin_abi.h"
#include "media/profile.h"
#include "media/rgb_convert.h"

namespace fovea::media {
namespace {

using Context = std::unique_ptr<heif_context, decltype(&heif_context_free)>;
using Handle = std::unique_ptr<heif_image_handle, decltype(&heif_image_handle_release)>;
using HeifImage = std::unique_ptr<heif_image, decltype(&heif_image_release)>;
using Profile = std::unique_ptr<heif_color_profile_nclx, decltype(&heif_nclx_color_profile_free)>;

/// HEVC codes blocks of up to 64 pixels. Tiles are not larger than that, or than the image.
constexpr std::int64_t kBlockSide = 64;
constexpr std::int64_t kTileSide = 1024;

void check_heif(const heif_error& error, std::string_view name) {
  if (error.code == heif_error_Ok) return;
  if (error.code == heif_error_Memory_allocation_error &&
      error.subcode != heif_suberror_Security_limit_exceeded)
    throw std::bad_alloc();
  const bool is_unknown =
      error.code == heif_error_Unsupported_feature || error.code == heif_error_Unsupported_filetype;
  throw Error(is_unknown ? ErrorCode::kUnsupported : ErrorCode::kCorruptData,
              cat(name, ": cannot decode HEIC: ", error.message));
}

/// A file whose boxes have been read, and its image. The bytes must outlive it.
class HeicFile {
 public:
  explicit HeicFile(const EncodedImage& source)
      : context_(heif_context_alloc(), &heif_context_free),
        handle_(nullptr, &heif_image_handle_release) {
    if (!context_) throw std::bad_alloc();
    is_grid_ = check_heic_items(source);
    heif_context_set_max_decoding_threads(context_.get(), 0);
    check_heif(heif_context_read_from_memory_without_copy(context_.get(), source.bytes.data(),
                                                          source.bytes.size(), nullptr),
               source.name);
    heif_image_handle* handle = nullptr;
    check_heif(heif_context_get_primary_image_handle(context_.get(), &handle), source.name);
    handle_.reset(handle);
  }

  [[nodiscard]] const heif_image_handle* handle() const noexcept { return handle_.get(); }
  /// Sides of the upright image.
  [[nodiscard]] std::int64_t width_px() const noexcept {
    return heif_image_handle_get_width(handle());
  }
  [[nodiscard]] std::int64_t height_px() const noexcept {
    return heif_image_handle_get_height(handle());
  }
  /// An image may have blocks that are coded around it, before it is cropped, or consist of tiles
  /// that reach beyond it, and it may have alpha.
  [[nodiscard]] HevcLimits limits() const noexcept {
    return {.pixels = std::max(padded_pixels(kBlockSide), is_grid_ ? kTileSide * kTileSide : 0),
            .pixels_in_all = 2 * padded_pixels(is_grid_ ? kTileSide : kBlockSide),
            .bits = heif_image_handle_get_luma_bits_per_pixel(handle()) == 8 ? 8 : 16};
  }
  [[nodiscard]] bool has_alpha() const noexcept {
    return heif_image_handle_has_alpha_channel(handle()) != 0;
  }

  /// @throws Error(kCorruptData) for another size than the file says. That of a tile may be any.
  void check_size(const HevcImage& coded, std::string_view name) const {
    const int width = heif_image_handle_get_ispe_width(handle());
    const int height = heif_image_handle_get_ispe_height(handle());
    FOVEA_CHECK(is_grid_ || (coded.width_px == width && coded.height_px == height), kCorruptData,
                name, ": HEIC image of ", coded.width_px, " x ", coded.height_px,
                " pixels in a file of ", width, " x ", height);
  }

 private:
  [[nodiscard]] std::int64_t padded_pixels(std::int64_t more) const noexcept {
    const std::int64_t width = std::max(heif_image_handle_get_ispe_width(handle()), 0);
    const std::int64_t height = std::max(heif_image_handle_get_ispe_height(handle()), 0);
    return (width + more) * (height + more);
  }

  Context context_;
  Handle handle_;
  bool is_grid_ = false;
};

/// Memory that libheif and libde265 take: what libde265 keeps of a coded image, and the planes of
/// the image before and after it is turned, with 16 bits per sample if they have more than 8.
std::size_t library_bytes(const HeicFile& file) {
  const HevcLimits limits = file.limits();
  const std::size_t planes = 3 + (file.has_alpha() ? 1 : 0);
  constexpr std::size_t kCodedPlanes = 3;
  constexpr std::size_t kTables = 1;
  return static_cast<std::size_t>(limits.pixels) *
         ((2 * planes + kCodedPlanes) * (limits.bits > 8 ? 2 : 1) + kTables);
}

ImageHeader read_heic_header(const EncodedImage& source, const MediaLimits&) {
  const HeicFile file(source);
  return {
      .info = {.format = ImageFormat::kHeic,
               .width_px = file.width_px(),
               .height_px = file.height_px(),
               .decode_bytes = ImageWriter::memory_bytes(file.width_px(), file.height_px()) +
                               library_bytes(file) + 2 * source.bytes.size() + 4 * kDecoderBytes},
      .turned_by_reader = true};
}

/// The colours that the file names; without these, those of the bitstream.
HevcColors colors_of(const HeicFile& file, HevcColors colors) {
  heif_color_profile_nclx* found = nullptr;
  const heif_error error = heif_image_handle_get_nclx_color_profile(file.handle(), &found);
  const Profile profile(found, &heif_nclx_color_profile_free);  // libheif 1.15 has one in an error
  if (error.code != heif_error_Ok) return colors;
  colors.matrix = profile->matrix_coefficients;
  colors.primaries = profile->color_primaries;
  colors.is_full_range = profile->full_range_flag != 0;
  return colors;
}

/// Rows of one plane of a decoded image.
class PlaneRows {
 public:
  PlaneRows(const heif_image* image, heif_channel channel, std::string_view name)
      : width_(heif_image_get_width(image, channel)),
        height_(heif_image_get_height(image, channel)),
        num_bits_(heif_image_get_bits_per_pixel_range(image, channel)),
        samples_(heif_image_get_plane_readonly(image, channel, &stride_)) {
    FOVEA_CHECK(samples_ != nullptr && num_bits_ >= 8 && num_bits_ <= 16, kCorruptData, name,
                ": HEIC image that lacks a plane");
    row_.resize(static_cast<std::size_t>(width_));
  }

  [[nodiscard]] int width() const noexcept { return width_; }
  [[nodiscard]] int height() const noexcept { return height_; }
  [[nodiscard]] int num_bits() const noexcept { return num_bits_; }

  /// Valid until the next call.
  [[nodiscard]] const std::uint16_t* row(std::int64_t y) {
    const std::uint8_t* const samples = samples_ + y * stride_;
    if (num_bits_ > 8)
      std::memcpy(row_.data(), samples, 2 * row_.size());
    else
      std::copy_n(samples, row_.size(), row_.begin());
    return row_.data();
  }

 private:
  int width_;
  int height_;
  int num_bits_;
  int stride_ = 0;
  const std::uint8_t* samples_;
  std::vector<std::uint16_t> row_;
};

struct DecodedHeic {
  HeifImage image;
  HevcColors colors;
};

DecodedHeic decode_planes(const HeicFile& file, std::string_view name) {
  HevcScope scope(name, file.limits());
  heif_image* image = nullptr;
  const heif_error error = heif_decode_image(file.handle(), &image, heif_colorspace_undefined,
                                             heif_chroma_undefined, nullptr);
  HeifImage owned(image, &heif_image_release);
  scope.rethrow();
  check_heif(error, name);
  FOVEA_CHECK(scope.first_image(), kCorruptData, name, ": HEIC image without HEVC data");
  file.check_size(*scope.first_image(), name);
  return {std::move(owned), colors_of(file, scope.first_image()->colors)};
}

/// The treatment of alpha.
enum class Alpha : std::uint8_t { kNone, kComposited, kDivided, kIgnored };

Alpha alpha_of(const HeicFile& file, MediaProfile profile) {
  if (!file.has_alpha()) return Alpha::kNone;
  // Pillow has a mode of its own for multiplied colours, which no loader composites.
  if (heif_image_handle_is_premultiplied_alpha(file.handle()) != 0) return Alpha::kDivided;
  return rules_of(profile).compositing == Compositing::kNone ? Alpha::kIgnored : Alpha::kComposited;
}

/// Undoes the multiplication by alpha as Pillow does.
void divide_by_alpha(const std::uint8_t* rgba, std::size_t count, std::uint8_t* rgb) {
  for (std::size_t x = 0; x < count; ++x, rgba += 4, rgb += 3) {
    const int alpha = rgba[3] == 0 ? 255 : rgba[3];
    for (std::size_t c = 0; c < 3; ++c)
      rgb[c] = static_cast<std::uint8_t>(std::min(255 * rgba[c] / alpha, 255));
  }
}

/// Makes rows of RGB of a decoded image.
class HeicRows {
 public:
  HeicRows(const DecodedHeic& decoded, const ImageHeader& header, Alpha alpha,
           std::string_view name)
      : luma_(decoded.image.get(), heif_channel_R, name),
        cb_(decoded.image.get(), heif_channel_G, name),
        cr_(decoded.image.get(), heif_channel_B, name),
        converter_(decoded.colors, alpha != Alpha::kNone, name),
        alpha_(alpha),
        width_(static_cast<std::size_t>(header.info.width_px)) {
    if (uses_alpha()) {
      alphas_.emplace(decoded.image.get(), heif_channel_Alpha, name);
      rgba_.resize(4 * width_);
    }
    for (const PlaneRows* const plane : {&luma_, &cb_, &cr_, alphas_ ? &*alphas_ : &luma_})
      FOVEA_CHECK(
          plane->width() == header.info.width_px && plane->height() == header.info.height_px,
          kCorruptData, name, ": HEIC image of ", plane->width(), " x ", plane->height(),
          " pixels in a file of ", header.info.width_px, " x ", header.info.height_px);
    for (const PlaneRows* const plane : {&luma_, &cb_, &cr_})
      FOVEA_CHECK(plane->num_bits() == decoded.colors.num_bits, kCorruptData, name,
                  ": HEIC image of ", plane->num_bits(), " bits made of tiles of ",
                  decoded.colors.num_bits);
  }

  void write(std::int64_t y, const MediaOptions& options, std::uint8_t* rgb) {
    converter_.convert({luma_.row(y), cb_.row(y), cr_.row(y)}, width_, rgb);
    if (!uses_alpha()) return;
    const std::uint16_t* const alphas = alphas_->row(y);
    for (std::size_t x = 0; x < width_; ++x) {
      std::copy_n(rgb + 3 * x, 3, rgba_.data() + 4 * x);
      rgba_[4 * x + 3] = static_cast<std::uint8_t>(alphas[x] >> (alphas_->num_bits() - 8));
    }
    if (alpha_ == Alpha::kDivided)
      divide_by_alpha(rgba_.data(), width_, rgb);
    else
      composite_rgba(rgba_.data(), width_, options.background, rgb);
  }

 private:
  [[nodiscard]] bool uses_alpha() const noexcept {
    return alpha_ == Alpha::kDivided || alpha_ == Alpha::kComposited;
  }

  PlaneRows luma_;
  PlaneRows cb_;
  PlaneRows cr_;
  HeicConverter converter_;
  Alpha alpha_;
  std::size_t width_;
  std::optional<PlaneRows> alphas_;
  std::vector<std::uint8_t> rgba_;
};

Image decode_heic(const EncodedImage& source, const ImageHeader& header,
                  const MediaOptions& options, std::vector<std::uint8_t> memory,
                  const Interrupt* interrupt) {
  const InterruptScope scope(interrupt);
  check_interrupt();
  const HeicFile file(source);
  const DecodedHeic decoded = decode_planes(file, source.name);
  HeicRows rows(decoded, header, alpha_of(file, options.profile), source.name);
  ImageWriter writer(header.info.width_px, header.info.height_px, Orientation::kUpright,
                     std::move(memory));
  for (std::int64_t y = 0; y < header.info.height_px; ++y) {
    check_interrupt();
    rows.write(y, options, writer.row(y));
    writer.finish_row(y);
  }
  return writer.take();
}

[[gnu::section(".note.fovea"), gnu::aligned(4), gnu::used]] constexpr PluginNote kNote{
    .build = image_plugin_build("heic")};

}  // namespace
}  // namespace fovea::media

extern "C" __attribute__((visibility("default"))) const fovea::media::ImagePlugin*
fovea_image_plugin() {
  static const std::string library = [] {
    fovea::media::HevcScope::register_decoder();
    return fovea::cat("libheif ", heif_get_version(), ", libde265 ", de265_get_version());
  }();
  static const fovea::media::ImagePlugin plugin{.library = library.c_str(),
                                                .read_header = &fovea::media::read_heic_header,
                                                .decode = &fovea::media::decode_heic};
  return &plugin;
}
