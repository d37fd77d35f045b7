#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "serve/media/media_source.h"

namespace fovea::serve {

/// Most media of each modality in one prompt (--max-images-per-prompt).
struct PromptLimits {
  std::int64_t images = std::numeric_limits<std::int64_t>::max();
  std::int64_t videos = std::numeric_limits<std::int64_t>::max();
};

/// Counts the media of one prompt.
class MediaCounter {
 public:
  explicit MediaCounter(const PromptLimits& limits) : limits_(limits) {}

  /// @throws ApiError(400, "too_many_images" or "too_many_videos") that names this one if there are
  /// more of its modality than a prompt may have. Source: vLLM 0.33, --limit-mm-per-prompt.
  void count(const MediaReference& reference);

 private:
  PromptLimits limits_;
  std::int64_t images_ = 0;
  std::int64_t videos_ = 0;
};

/// Bounds of a request.
struct CallLimits {
  std::size_t max_items = 64;                ///< --max-items-per-request
  std::int64_t max_json_values = 4'000'000;  ///< --max-json-values
  PromptLimits media;                        ///< --max-images-per-prompt
};

/// Refuses a list of too many items, before anything is made of its elements.
/// @param most --max-items-per-request. @throws ApiError(400, "too_many_items").
void check_item_count(std::size_t items, std::size_t most);

}  // namespace fovea::serve
