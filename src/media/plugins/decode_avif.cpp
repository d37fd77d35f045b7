// AVIF by libavif, with dav1d: the image of a file, or the first one of a sequence. Its header is
// read without decoding. An image is decoded at one go, by the calling thread.
#include <avif/avif.h>
#include <dav1d/dav1d.h>
#include <dlfcn.h>

#include <algorithm>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/interrupt.h"
#include "media/bytes.h"
#include "media/formats/image_writer.h"
#include "media/plugins/avif_pixels.h"
#include "media/plugins/image_plugin_abi.h"
#include "media/profile.h"
#include "media/rgb_convert.h"

namespace fovea::media {
namespace {

using Decoder = std::unique_ptr<avifDecoder, decltype(&avifDecoderDestroy)>;

/// Sequences of more images are refused: a table of them takes some 100 bytes each.
constexpr std::uint32_t kMostImages = 65536;

/// AV1 codes blocks of 64 pixels.
constexpr std::int64_t kBlockSide = 64;

/// A decoder that has read the header of a file, as laxly as Pillow's.
/// @param most_pixels of a coded image, and of one that a header names.
Decoder open_avif(const EncodedImage& source, std::int64_t most_pixels) {
  Decoder decoder(avifDecoderCreate(), avifDecoderDestroy);
  if (!decoder) throw std::bad_alloc();
  decoder->maxThreads = 1;
  decoder->imageCountLimit = kMostImages;
  constexpr std::int64_t kMostOfLibrary = AVIF_DEFAULT_IMAGE_SIZE_LIMIT;
  decoder->imageSizeLimit = static_cast<std::uint32_t>(std::min(most_pixels, kMostOfLibrary));
  decoder->strictFlags &=
      ~static_cast<avifStrictFlags>(AVIF_STRICT_CLAP_VALID | AVIF_STRICT_PIXI_REQUIRED);
  check_avif(avifDecoderSetIOMemory(decoder.get(), source.bytes.data(), source.bytes.size()),
             source.name);
  check_avif(avifDecoderParse(decoder.get()), source.name);
  return decoder;
}

/// libavif 1.0 renamed the axis of a mirrored image.
std::uint8_t axis_of(const auto& mirror) {
  if constexpr (requires { mirror.axis; })
    return mirror.axis;
  else
    return mirror.mode;
}

/// A quarter turn counter-clockwise `angle` times, then a mirror image: left and right if `axis` is
/// 1, top and bottom if it is 0.
Orientation transform_of(const avifImage& image) {
  const bool mirrors = (image.transformFlags & AVIF_TRANSFORM_IMIR) != 0;
  const bool left_and_right = mirrors && axis_of(image.imir) != 0;
  const int angle = (image.transformFlags & AVIF_TRANSFORM_IROT) != 0 ? image.irot.angle : 0;
  switch (angle) {
    case 1:
      return !mirrors         ? Orientation::kRotate270
             : left_and_right ? Orientation::kTransverse
                              : Orientation::kTranspose;
    case 2:
      return !mirrors         ? Orientation::kRotate180
             : left_and_right ? Orientation::kMirrorVertical
                              : Orientation::kMirrorHorizontal;
    case 3:
      return !mirrors         ? Orientation::kRotate90
             : left_and_right ? Orientation::kTranspose
                              : Orientation::kTransverse;
    default:
      return !mirrors         ? Orientation::kUpright
             : left_and_right ? Orientation::kMirrorHorizontal
                              : Orientation::kMirrorVertical;
  }
}

/// That of the file's transformations. If there are none, EXIF says nothing, as in Pillow, but that
/// the XMP packet does not count.
Orientation read_avif_orientation(const avifImage& image) {
  const Orientation transform = transform_of(image);
  if (transform != Orientation::kUpright) return transform;
  const Bytes exif(image.exif.data, image.exif.size);
  const Bytes xmp(image.xmp.data, image.xmp.size);
  return has_exif_orientation(exif) ? Orientation::kUpright : read_orientation({}, xmp);
}

/// Memory that libavif and dav1d take: the planes of the image and of those that it may be made of,
/// with 16 bits per sample if they have more than 8, and tables for every pixel beside them.
std::size_t library_bytes(const avifImage& image, bool has_alpha) {
  const std::size_t pixels =
      (std::size_t{image.width} + 2 * kBlockSide) * (std::size_t{image.height} + 2 * kBlockSide);
  const std::size_t samples = image.yuvFormat == AVIF_PIXEL_FORMAT_YUV444   ? 3
                              : image.yuvFormat == AVIF_PIXEL_FORMAT_YUV400 ? 1
                                                                            : 2;
  constexpr std::size_t kTables = 3;
  return pixels * (2 * (samples + (has_alpha ? 1 : 0)) * (image.depth > 8 ? 2 : 1) + kTables);
}

ImageHeader read_avif_header(const EncodedImage& source, const MediaLimits& limits) {
  const Decoder decoder = open_avif(source, limits.max_image_pixels);
  const avifImage& image = *decoder->image;
  const bool has_alpha = decoder->alphaPresent != 0;
  return {.info = {.format = ImageFormat::kAvif,
                   .width_px = image.width,
                   .height_px = image.height,
                   .decode_bytes = ImageWriter::memory_bytes(image.width, image.height) +
                                   avif_pixel_bytes(image, has_alpha) +
                                   library_bytes(image, has_alpha) + 4 * kDecoderBytes},
          .orientation = read_avif_orientation(image)};
}

/// Versions of libavif before 1.0 end the process if there is no memory: this throws before they
/// ask for it.
void try_memory(std::size_t num_bytes) {
  const std::unique_ptr<void, void (*)(void*)> memory(::operator new(num_bytes),
                                                      [](void* one) { ::operator delete(one); });
  *static_cast<volatile std::uint8_t*>(memory.get()) = 0;
}

Image decode_avif(const EncodedImage& source, const ImageHeader& header,
                  const MediaOptions& options, std::vector<std::uint8_t> memory,
                  const Interrupt* interrupt) {
  const InterruptScope scope(interrupt);
  check_interrupt();
  try_memory(header.info.decode_bytes);
  const std::int64_t most_pixels =
      (header.info.width_px + kBlockSide) * (header.info.height_px + kBlockSide);
  const Decoder decoder = open_avif(source, most_pixels);
  check_avif(avifDecoderNextImage(decoder.get()), source.name);
  const avifImage& image = *decoder->image;
  FOVEA_CHECK(image.width == header.info.width_px && image.height == header.info.height_px,
              kCorruptData, source.name, ": AVIF image of ", image.width, " x ", image.height,
              " pixels in a file of ", header.info.width_px, " x ", header.info.height_px);
  const bool has_alpha = decoder->alphaPresent != 0 && image.alphaPlane != nullptr;
  check_interrupt();
  const std::vector<std::uint8_t> pixels = avif_pixels(image, has_alpha, source.name, {});
  const bool composites = rules_of(options.profile).compositing != Compositing::kNone;
  ImageWriter writer(image.width, image.height, header.orientation, std::move(memory));
  const std::size_t row_bytes = image.width * num_avif_channels(has_alpha);
  for (std::int64_t y = 0; y < header.info.height_px; ++y) {
    check_interrupt();
    const std::uint8_t* const row = pixels.data() + static_cast<std::size_t>(y) * row_bytes;
    if (!has_alpha)
      std::copy_n(row, row_bytes, writer.row(y));
    else if (composites)
      composite_rgba(row, image.width, options.background, writer.row(y));
    else
      drop_alpha(row, image.width, writer.row(y));
    writer.finish_row(y);
  }
  return writer.take();
}

[[gnu::section(".note.fovea"), gnu::aligned(4), gnu::used]] constexpr PluginNote kNote{
    .build = image_plugin_build("avif")};

}  // namespace
}  // namespace fovea::media

/// dav1d writes complaints about damaged images to stderr, and libavif gives no way to stop it. It
/// finds this function before dav1d's own, because libraries of a plugin look for symbols in the
/// plugin first.
extern "C" __attribute__((visibility("default"))) void dav1d_default_settings(
    Dav1dSettings* settings) {
  static const auto original = reinterpret_cast<void (*)(Dav1dSettings*)>(
      dlsym(RTLD_NEXT, "dav1d_default_settings"));  // NOLINT: of libdav1d, which libavif needs
  original(settings);
  settings->logger.callback = nullptr;
}

extern "C" __attribute__((visibility("default"))) const fovea::media::ImagePlugin*
fovea_image_plugin() {
  static const std::string library = [] {
    char codecs[256];
    avifCodecVersions(codecs);
    return fovea::cat("libavif ", avifVersion(), ", ", codecs);
  }();
  static const fovea::media::ImagePlugin plugin{.library = library.c_str(),
                                                .read_header = &fovea::media::read_avif_header,
                                                .decode = &fovea::media::decode_avif};
  return &plugin;
}
