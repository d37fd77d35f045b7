#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "serve/media/media_source.h"

namespace fovea::serve {

/// Most frames of all videos of a request that come frame by frame: those of 256 videos that are
/// sampled as vLLM does, 32 frames each. Each costs some 700 bytes beside its own.
inline constexpr std::size_t kMaxRequestFrames = 8'192;

/// Whether a reference is a video that comes frame by frame, so that its rate is not in its bytes.
[[nodiscard]] bool comes_in_frames(const MediaReference& reference);

/// Videos that a request names frame by frame: as a list of URLs, or as one data URL of the type
/// video/jpeg, with commas between the frames. While they are resolved, each frame is an image.
/// Source: vLLM, `VideoMediaIO.load_base64`.
class FrameLists {
 public:
  /// Puts references to the frames, named "items[0].frames[3]", in the places of such videos.
  /// @throws ApiError(422, "too_many_frames") for a video of more than `max_frames`, and videos of
  /// more than kMaxRequestFrames together, before anything is made of them.
  FrameLists(std::vector<MediaReference>& references, std::int64_t max_frames);

  /// Puts the videos in the places of the items that their frames have become.
  void join(std::vector<MediaItem>& items) const;

 private:
  struct Video {
    std::size_t place;  ///< of the first frame
    std::size_t num_frames;
    double fps;
    std::string mm_processor_kwargs;
    std::string param;
  };
  std::vector<Video> videos_;  // in the order of their places
};

}  // namespace fovea::serve
