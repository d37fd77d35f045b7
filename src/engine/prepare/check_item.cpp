// Callers fill in MediaItem by hand: nothing about it is taken for granted.
#include "engine/prepare/check_item.h"

#include <cstdint>
#include <optional>

#include "core/check.h"
#include "core/row_dtype.h"
#include "fovea/tower/core/shape.h"
#include "media/limits.h"

namespace fovea {

void check_source(const MediaItem& media) {
  using Source = MediaItem::Source;
  FOVEA_CHECK(media.bytes.empty() || media.borrowed.empty(), kInvalidArgument, media.name,
              ": expected bytes of its own or of somebody else, got both");
  switch (media.source) {
    case Source::kFile:
      FOVEA_CHECK(media.paths.size() == 1, kInvalidArgument, media.name,
                  ": expected one path of a file, got ", media.paths.size());
      return;
    case Source::kFrameFiles:
      FOVEA_CHECK(!media.paths.empty(), kInvalidArgument, media.name,
                  ": expected paths of frames, got none");
      return;
    case Source::kFrames:
      FOVEA_CHECK(!media.frames.empty(), kInvalidArgument, media.name,
                  ": expected frames, got none");
      for (std::size_t i = 0; i < media.frames.size(); ++i) {
        FOVEA_CHECK(!media.frames[i].empty(), kInvalidArgument, frame_name(media, i),
                    ": expected an encoded image, got no bytes");
      }
      return;
    case Source::kBytes:
      FOVEA_CHECK(!media.content().empty(), kInvalidArgument, media.name,
                  ": expected an encoded image or video, got no bytes");
      return;
    case Source::kPixelValues:
      FOVEA_CHECK(media.grid_thw, kInvalidArgument, media.name,
                  ": pixel values need their grid_thw");
      return;
    case Source::kRgb:  // their bytes have to fit numbers
    case Source::kRows:
    case Source::kRowBlock: return;
  }
  FOVEA_CHECK(false, kInvalidArgument, media.name, ": an item has no source of number ",
              static_cast<int>(media.source));
}

std::string frame_name(const MediaItem& media, std::size_t frame) {
  return cat(media.name, "[", frame, "]");
}

void check_rgb(const MediaItem& media, const MediaLimits& limits) {
  FOVEA_CHECK(media.width_px >= 1 && media.height_px >= 1 && media.num_frames >= 1,
              kInvalidArgument, media.name,
              ": expected at least 1 frame of at least 1x1 pixels, got ", media.num_frames, " of ",
              media.width_px, "x", media.height_px);
  media::check_image_size(media.width_px, media.height_px, media.name, limits);
  media::check_num_frames(media.num_frames, media.name, limits);
  const auto bytes = checked_mul(3 * media.width_px * media.height_px, media.num_frames);
  FOVEA_CHECK(bytes && static_cast<std::uint64_t>(*bytes) == media.content().size(),
              kInvalidArgument, media.name, ": ", media.num_frames, " frames of ", media.width_px,
              "x", media.height_px, " RGB pixels do not take ", media.content().size(), " bytes");
}

void check_matrix(const MediaItem& media, const char* rows) {
  const auto elements = checked_mul(media.num_rows, media.row_width);
  const auto element_bytes = static_cast<std::int64_t>(size_of(to_dtype(media.row_dtype)));
  const auto bytes = elements ? checked_mul(*elements, element_bytes) : std::nullopt;
  FOVEA_CHECK(bytes && media.num_rows >= 0 && media.row_width >= 0 &&
                  static_cast<std::uint64_t>(*bytes) == media.content().size(),
              kInvalidArgument, media.name, ": ", media.num_rows, " ", rows, " of ",
              media.row_width, " x ", to_string(to_dtype(media.row_dtype)), " do not take ",
              media.content().size(), " bytes");
}

}  // namespace fovea
