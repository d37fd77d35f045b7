// Entrance to the decoders: format, header, limits, pixels, orientation, in this order. No memory
// that depends on the image's size is allocated before the limits have been checked.
#include "media/decode_image.h"

#include <algorithm>
#include <new>
#include <utility>

#include "core/check.h"
#include "core/interrupt.h"
#include "media/formats/decoders.h"
#include "media/limits.h"
#include "media/orientation.h"
#include "media/plugins/image_plugins.h"
#include "media/profile.h"
#include "media/reduction.h"

namespace fovea::media {
namespace {

ImageHeader read_header(const EncodedImage& source, const MediaLimits& limits) {
  const ImageFormat format = detect_image_format(source.bytes, source.name);
  switch (format) {
    case ImageFormat::kJpeg: return read_jpeg_header(source, 1);
    case ImageFormat::kPng: return read_png_header(source);
    case ImageFormat::kWebp: return read_webp_header(source);
    case ImageFormat::kBmp: return read_bmp_header(source);
    default: return image_plugin(format, source.name).read_header(source, limits);
  }
}

void check_limits(const ImageInfo& info, std::string_view name, const MediaLimits& limits) {
  FOVEA_CHECK(info.width_px >= 1 && info.height_px >= 1, kCorruptData, name,
              ": expected sides of at least 1 pixel, got ", info.width_px, " x ", info.height_px);
  check_image_size(info.width_px, info.height_px, name, limits);
  check_decode_bytes(info.decode_bytes, name, limits);
}

/// The orientation is upright if the profile turns no images.
ImageHeader read_checked_header(const EncodedImage& source, const MediaOptions& options,
                                int reduction) {
  const MediaLimits& limits = options.limits;
  FOVEA_CHECK(std::ranges::find(kReductions, reduction) != kReductions.end(), kInternal,
              source.name, ": no image is decoded at 1/", reduction, " of its size");
  FOVEA_CHECK(source.bytes.size() <= limits.max_image_bytes, kInvalidArgument, source.name,
              ": expected at most ", limits.max_image_bytes, " encoded bytes, got ",
              source.bytes.size());
  ImageHeader header = read_header(source, limits);
  check_limits(header.info, source.name, limits);
  if (reduction > 1 && header.info.format == ImageFormat::kJpeg) {
    header = read_jpeg_header(source, reduction);
  }
  if (!rules_of(options.profile).turns_upright && !header.turned_by_reader)
    header.orientation = Orientation::kUpright;
  header.info.margins = turned(header.info.margins, header.orientation);
  return header;
}

Image decode_pixels(const EncodedImage& source, const ImageHeader& header,
                    const MediaOptions& options, std::vector<std::uint8_t> memory) {
  switch (header.info.format) {
    case ImageFormat::kJpeg: return decode_jpeg(source, header, std::move(memory));
    case ImageFormat::kPng: return decode_png(source, header, options, std::move(memory));
    case ImageFormat::kWebp: return decode_webp(source, header, options, std::move(memory));
    case ImageFormat::kBmp: return decode_bmp(source, header, options, std::move(memory));
    default:
      return image_plugin(header.info.format, source.name)
          .decode(source, header, options, std::move(memory), current_interrupt());
  }
}

}  // namespace

ImageInfo probe_image(std::span<const std::uint8_t> bytes, std::string_view name,
                      const MediaOptions& options, int reduction) {
  const ImageHeader header = read_checked_header({bytes, name}, options, reduction);
  ImageInfo info = header.info;
  if (swaps_sides(header.orientation)) std::swap(info.width_px, info.height_px);
  return info;
}

Image decode_image(std::span<const std::uint8_t> bytes, std::string_view name,
                   const MediaOptions& options, int reduction, std::vector<std::uint8_t> memory) {
  const EncodedImage source{bytes, name};
  const ImageHeader header = read_checked_header(source, options, reduction);
  try {
    Image image = decode_pixels(source, header, options, std::move(memory));
    image.margins = header.info.margins;
    return image;
  } catch (const std::bad_alloc&) {
    throw Error(ErrorCode::kOutOfMemory,
                cat(name, ": no memory for an image of ", header.info.width_px, " x ",
                    header.info.height_px, " pixels"));
  }
}

}  // namespace fovea::media
