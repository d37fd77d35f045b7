// Any bytes as a video container: an accepted file gives the sampled frames, all of one size.
#include <algorithm>
#include <vector>

#include "fuzz.h"
#include "media/video.h"

using fovea::media::VideoInfo;
using fovea::test::require;

namespace {

/// The first frame, the last one, and one between them twice.
std::vector<std::int64_t> sample(const VideoInfo& info) {
  require(info.num_frames >= 1 && info.fps >= 0 && info.width_px >= 1 && info.height_px >= 1);
  const std::int64_t last = info.num_frames - 1;
  return {0, last / 2, last / 2, last};
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fovea::MediaLimits limits{.max_image_pixels = 1 << 16};  // keeps a run fast
  std::vector<std::int64_t> sides;
  const auto sink = [&](const fovea::media::Image& frame) {
    sides.insert(sides.end(), {frame.width_px, frame.height_px});
    require(frame.width_px == sides[0] && frame.height_px == sides[1]);
    require(frame.rgb.size() == static_cast<std::size_t>(frame.width_px * frame.height_px * 3));
  };
  if (!fovea::test::accepts([&] {
        fovea::media::decode_video({.bytes = {data, size}, .name = "fuzz"}, &sample, limits, sink);
      }))
    return 0;
  require(sides.size() == 8);
  return 0;
}
