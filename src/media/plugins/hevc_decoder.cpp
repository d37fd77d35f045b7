// The decoder that libheif is given: libde265 without threads. libheif passes every coded image,
// the parameter sets of its item in front, as NAL units behind lengths of 4 bytes.
#include "media/plugins/hevc_decoder.h"

#include <libde265/de265.h>
#include <libheif/heif.h>
#include <libheif/heif_plugin.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <new>

#include "core/check.h"
#include "core/interrupt.h"
#include "media/bytes.h"
#include "media/plugins/hevc_units.h"

namespace fovea::media {
namespace {

thread_local HevcScope* current_scope = nullptr;  // NOLINT(*-avoid-non-const-global-variables)

constexpr heif_error kNoError{heif_error_Ok, heif_suberror_Unspecified, "Success"};
constexpr heif_error kFailed{heif_error_Decoder_plugin_error, heif_suberror_Unspecified,
                             "HEVC image could not be decoded"};

using HeifImage = std::unique_ptr<heif_image, void (*)(const heif_image*)>;

/// One plane of `image`, of full size: every sample of `from` stands for `per_x` times `per_y`.
void copy_plane(const de265_image* from, int plane, heif_image* image, heif_channel channel) {
  const int width = de265_get_image_width(from, 0);
  const int height = de265_get_image_height(from, 0);
  const int per_x = width > de265_get_image_width(from, plane) ? 2 : 1;
  const int per_y = height > de265_get_image_height(from, plane) ? 2 : 1;
  const std::size_t sample_bytes = de265_get_bits_per_pixel(from, 0) > 8 ? 2 : 1;
  int from_stride = 0;
  const std::uint8_t* const samples = de265_get_image_plane(from, plane, &from_stride);
  int stride = 0;
  std::uint8_t* const rows = heif_image_get_plane(image, channel, &stride);
  for (int y = 0; y < height; ++y) {
    const std::uint8_t* const in = samples + std::ptrdiff_t{y / per_y} * from_stride;
    std::uint8_t* const out = rows + std::ptrdiff_t{y} * stride;
    const auto count = static_cast<std::size_t>(width);
    if (per_x == 1) {
      std::memcpy(out, in, count * sample_bytes);
    } else if (sample_bytes == 1) {
      for (std::size_t x = 0; x < count; ++x) out[x] = in[x / 2];
    } else {
      for (std::size_t x = 0; x < count; ++x) std::memcpy(out + 2 * x, in + x / 2 * 2, 2);
    }
  }
}

HevcColors colors_of(const de265_image* image) {
  return {.matrix = de265_get_image_matrix_coefficients(image),
          .primaries = de265_get_image_colour_primaries(image),
          .is_full_range = de265_get_image_full_range_flag(image) != 0,
          .is_grey = de265_get_chroma_format(image) == de265_chroma_mono,
          .is_420 = de265_get_chroma_format(image) == de265_chroma_420,
          .num_bits = de265_get_bits_per_pixel(image, 0)};
}

}  // namespace

/// A decoder of one coded image. libheif's functions call its methods; what these throw is kept for
/// the scope.
class HevcDecoder {
 public:
  HevcDecoder() : scope_(current_scope), context_(de265_new_decoder(), &de265_free_decoder) {
    if (!context_) throw std::bad_alloc();
  }

  void push(Bytes bytes) {
    while (!bytes.empty()) {
      const std::size_t length = bytes.size() < 4 ? bytes.size() : big_endian_u32(bytes);
      FOVEA_CHECK(bytes.size() >= 4 && length <= bytes.size() - 4, kCorruptData, scope_->name_,
                  ": HEVC unit of ", length, " bytes where ", bytes.size(), " are left");
      units_.add(bytes.subspan(4, length), scope_->name_);
      de265_push_NAL(context_.get(), bytes.data() + 4, static_cast<int>(length), 0, nullptr);
      bytes = bytes.subspan(4 + length);
    }
  }

  /// The first image of the bitstream.
  HeifImage decode() {
    admit();
    de265_flush_data(context_.get());
    const de265_image* decoded = nullptr;
    for (int more = 1; more != 0 && decoded == nullptr;) {
      check_interrupt();
      const de265_error error = de265_decode(context_.get(), &more);
      FOVEA_CHECK(error == DE265_OK, kCorruptData, scope_->name_,
                  ": cannot decode HEIC: ", de265_get_error_text(error));
      decoded = de265_get_next_picture(context_.get());
    }
    FOVEA_CHECK(decoded != nullptr, kCorruptData, scope_->name_,
                ": cannot decode HEIC: no image in the HEVC data");
    return copy(decoded);
  }

 private:
  void admit() {
    const std::int64_t pixels = units_.picture_pixels();
    HevcLimits& limits = scope_->limits_;
    FOVEA_CHECK(pixels <= limits.pixels && units_.num_bits() <= limits.bits, kInvalidArgument,
                scope_->name_, ": expected coded HEVC images of at most ", limits.pixels,
                " pixels of ", limits.bits, " bits, as the header says, got one of ", pixels,
                " pixels of ", units_.num_bits(), " bits");
    limits.pixels_in_all -= pixels * std::min<std::int64_t>(units_.num_pictures(), 1 << 16);
    FOVEA_CHECK(limits.pixels_in_all >= 0, kInvalidArgument, scope_->name_,
                ": more coded HEVC images than the size in the header needs");
  }

  HeifImage copy(const de265_image* decoded) const {
    const HevcColors colors = colors_of(decoded);
    const int num_planes = colors.is_grey ? 1 : 3;
    for (int plane = 1; plane < num_planes; ++plane)
      FOVEA_CHECK(de265_get_bits_per_pixel(decoded, plane) == colors.num_bits, kUnsupported,
                  scope_->name_, ": HEVC image of ", colors.num_bits, " bits and chroma of ",
                  de265_get_bits_per_pixel(decoded, plane));
    const int width = de265_get_image_width(decoded, 0);
    const int height = de265_get_image_height(decoded, 0);
    heif_image* made = nullptr;
    if (heif_image_create(width, height, heif_colorspace_RGB, heif_chroma_444, &made).code !=
        heif_error_Ok)
      throw std::bad_alloc();
    HeifImage image(made, &heif_image_release);
    constexpr std::array kChannels{heif_channel_R, heif_channel_G, heif_channel_B};
    for (int plane = 0; plane < 3; ++plane) {
      const heif_channel channel = kChannels[static_cast<std::size_t>(plane)];
      if (heif_image_add_plane(image.get(), channel, width, height, colors.num_bits).code !=
          heif_error_Ok)
        throw std::bad_alloc();
      copy_plane(decoded, plane < num_planes ? plane : 0, image.get(), channel);
    }
    if (!scope_->first_) scope_->first_ = {colors, width, height};
    return image;
  }

 public:
  /// Runs a method for libheif. @return its error.
  template <class Action>
  static heif_error run(Action&& action) noexcept {
    HevcScope& scope = *current_scope;
    try {
      action();
      return kNoError;
    } catch (...) {
      if (!scope.failure_) scope.failure_ = std::current_exception();
      return kFailed;
    }
  }

 private:
  HevcScope* scope_;
  std::unique_ptr<de265_decoder_context, de265_error (*)(de265_decoder_context*)> context_;
  HevcUnits units_;
};

namespace {

/// Larger than those of libheif's own decoders, which are around 100.
constexpr int kPriority = 1'000'000;

constexpr heif_decoder_plugin kPlugin{
    .plugin_api_version = 3,
    .get_plugin_name = [] { return "libde265, called by Fovea"; },
    .init_plugin = nullptr,
    .deinit_plugin = nullptr,
    // Every codec in a scope: one that another decoder of libheif knows fails here.
    .does_support_format =
        [](heif_compression_format) { return current_scope == nullptr ? 0 : kPriority; },
    .new_decoder =
        [](void** decoder) { return HevcDecoder::run([&] { *decoder = new HevcDecoder; }); },
    .free_decoder = [](void* decoder) { delete static_cast<HevcDecoder*>(decoder); },
    .push_data =
        [](void* decoder, const void* data, std::size_t size) {
          return HevcDecoder::run([&] {
            static_cast<HevcDecoder*>(decoder)->push(
                {static_cast<const std::uint8_t*>(data), size});
          });
        },
    .decode_image =
        [](void* decoder, heif_image** image) {
          return HevcDecoder::run(
              [&] { *image = static_cast<HevcDecoder*>(decoder)->decode().release(); });
        },
    .set_strict_decoding = [](void*, int) {},
    .id_name = "fovea"};

}  // namespace

HevcScope::HevcScope(std::string_view name, const HevcLimits& limits)
    : name_(name), limits_(limits), before_(current_scope) {
  current_scope = this;
}

HevcScope::~HevcScope() { current_scope = before_; }

void HevcScope::register_decoder() {
  heif_init(nullptr);
  (void)heif_register_decoder_plugin(&kPlugin);
}

void HevcScope::rethrow() const {
  if (failure_) std::rethrow_exception(failure_);
}

}  // namespace fovea::media
