#pragma once

#include <cstdint>
#include <functional>

#include "models/common/grid/processor.h"

namespace fovea::common {

/// Size of an image, or of the frames of a video, before padding.
/// @throws Error(kInvalidArgument) for one that cannot be.
using ContentSize = std::function<Size2d(std::int64_t height_px, std::int64_t width_px)>;

/// Sets the functions for sizes of `processing`: images, and frames where `video` is not empty,
/// stand on canvases whose sides are whole tokens, of most_grid_side patches at most.
void pad_to_tokens(GridProcessing& processing, ContentSize image, ContentSize video = {});

}  // namespace fovea::common
