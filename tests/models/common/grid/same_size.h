#pragma once

#include "models/common/grid/processor.h"

namespace fovea::test {

/// Patches of `patch_size` x `patch_size` pixels; images and videos keep their sizes.
[[nodiscard]] inline common::GridProcessing same_size(std::int64_t patch_size) {
  common::GridProcessing processing;
  processing.geometry.patch_size = patch_size;
  processing.image_size = [](std::int64_t height_px, std::int64_t width_px) {
    return common::Size2d{height_px, width_px};
  };
  processing.video_size = [](std::int64_t, std::int64_t height_px, std::int64_t width_px) {
    return common::Size2d{height_px, width_px};
  };
  return processing;
}

}  // namespace fovea::test
