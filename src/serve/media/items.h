#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "serve/api_error.h"
#include "serve/media/media_source.h"

namespace fovea::serve {

/// The item that a reference and its bytes make. @throws ApiError(400) if there are none.
[[nodiscard]] MediaItem item_of(const MediaReference& reference, MediaBytes bytes);

/// 422 "image_too_large" or "video_too_large": encoded media beyond its limit, wherever it is from.
[[nodiscard]] ApiError too_large(Modality modality, std::size_t max_bytes,
                                 const std::string& param);

}  // namespace fovea::serve
