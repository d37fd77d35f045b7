#include "serve/routes/call_limits.h"

#include <string>

#include "serve/api_error.h"

namespace fovea::serve {

void MediaCounter::count(const MediaReference& reference) {
  const bool is_image = reference.modality == Modality::kImage;
  const std::int64_t most = is_image ? limits_.images : limits_.videos;
  if (++(is_image ? images_ : videos_) <= most) return;
  const std::string name = to_string(reference.modality);
  refuse(reference.param,
         "at most " + std::to_string(most) + " " + name +
             "(s) may be provided in one prompt (--max-" + name + "s-per-prompt)",
         is_image ? "too_many_images" : "too_many_videos");
}

void check_item_count(std::size_t items, std::size_t most) {
  if (items <= most) return;
  throw ApiError(400, "too_many_items",
                 "the request has at least " + std::to_string(items) + " items; at most " +
                     std::to_string(most) + " are allowed (--max-items-per-request)",
                 "items");
}

}  // namespace fovea::serve
