// Any bytes as a video container: an accepted file gives the sampled frames that can be read, all
// of one size.
#include <algorithm>
#include <iterator>
#include <vector>

#include "fuzz.h"
#include "media/video.h"

using fovea::media::VideoInfo;
using fovea::test::require;

namespace {

/// The first frame, the last one, and one between them twice; without those that cannot be read, if
/// others are left.
std::vector<std::int64_t> sample(const VideoInfo& info) {
  require(info.num_frames >= 1 && info.fps >= 0 && info.width_px >= 1 && info.height_px >= 1);
  require(info.num_cut >= 0);
  const std::int64_t last = info.num_frames - 1;
  const std::vector<std::int64_t> chosen{0, last / 2, last / 2, last};
  std::vector<std::int64_t> others;
  std::ranges::copy_if(chosen, std::back_inserter(others), [&](std::int64_t index) {
    return !std::ranges::binary_search(info.unreadable, index);
  });
  require(info.unreadable.empty() || others.size() < chosen.size());
  return others.empty() ? chosen : others;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const fovea::MediaLimits limits{.max_image_pixels = 1 << 16};  // keeps a run fast
  std::vector<std::int64_t> sides;
  std::size_t num_chosen = 0;
  const auto sampler = [&](const VideoInfo& info) {
    sides.clear();
    std::vector<std::int64_t> chosen = sample(info);
    num_chosen = chosen.size();
    return chosen;
  };
  const auto sink = [&](const fovea::media::Image& frame) {
    sides.insert(sides.end(), {frame.width_px, frame.height_px});
    require(frame.width_px == sides[0] && frame.height_px == sides[1]);
    require(frame.rgb.size() == static_cast<std::size_t>(frame.width_px * frame.height_px * 3));
  };
  if (!fovea::test::accepts([&] {
        fovea::media::decode_video({.bytes = {data, size}, .name = "fuzz"}, sampler, limits, sink);
      }))
    return 0;
  require(sides.size() == 2 * num_chosen);
  return 0;
}
