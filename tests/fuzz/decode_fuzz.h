#pragma once

#include <optional>
#include <span>

#include "fuzz.h"
#include "media/decode_image.h"
#include "media/reduction.h"

namespace fovea::test {

/// Any bytes as an image of one format: an accepted file gives pixels of the probed size. Returns
/// what LLVMFuzzerTestOneInput returns: -1 keeps files of other formats out of the corpus.
inline int decode_one(media::ImageFormat format, const std::uint8_t* data, std::size_t size) {
  const std::span<const std::uint8_t> file(data, size);
  std::optional<media::ImageFormat> detected;
  (void)accepts([&] { detected = media::detect_image_format(file, "fuzz"); });
  if (detected != format) return -1;

  MediaOptions options;
  options.limits.max_image_pixels = 1 << 18;  // keeps a run fast
  options.profile = static_cast<MediaProfile>(size % 4);
  const int reduction = media::kReductions[size / 4 % media::kReductions.size()];
  media::ImageInfo info;
  if (!accepts([&] { info = media::probe_image(file, "fuzz", options, reduction); })) return 0;
  media::Image image;
  if (!accepts([&] { image = media::decode_image(file, "fuzz", options, reduction); })) return 0;
  require(image.width_px == info.width_px && image.height_px == info.height_px);
  require(image.rgb.size() == static_cast<std::size_t>(info.width_px * info.height_px * 3));
  return 0;
}

}  // namespace fovea::test
