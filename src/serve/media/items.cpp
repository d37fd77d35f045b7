#include "serve/media/items.h"

#include <utility>

namespace fovea::serve {

MediaItem item_of(const MediaReference& reference, MediaBytes bytes) {
  if (bytes.view().empty()) {
    throw ApiError(400, "invalid_value", "the media has no bytes", reference.param);
  }
  if (reference.modality == Modality::kImage) {
    return image_bytes(std::move(bytes), reference.param);
  }
  return video_bytes(std::move(bytes), reference.param, reference.fps);
}

ApiError too_large(Modality modality, std::size_t max_bytes, const std::string& param) {
  const std::string name = modality == Modality::kImage ? "image" : "video";
  return {422, name + "_too_large",
          "the encoded " + name + " has more than " + std::to_string(max_bytes) + " bytes (--max-" +
              name + "-bytes)",
          param};
}

}  // namespace fovea::serve
