#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "fovea/tower/models/encoder_graph_model.h"

namespace fovea {

/// Tokens of a common image.
inline constexpr std::int64_t kTypicalTokens = 1024;

/// The number of an image that a search counts: its patches, or its tokens on a path.
using ImageCount = std::function<std::int64_t(const ItemPlan&)>;

/// Images on both sides of a wanted count.
struct NearestImages {
  std::optional<ItemPlan> up_to;  ///< with the largest count that is not above, at least 1
  std::optional<ItemPlan> above;  ///< with the smallest count above among the sizes tried
};

/// Searches the sizes that a model takes for images with `wanted` of what `count` counts, by asking
/// plan_image. Tries the shapes that would have that many patches or tiles if those were square,
/// from the most to the least square, and for each the sizes up to 16384 pixels, along which counts
/// must not decrease much. So `up_to` is exact for models that cut an image into a grid, unless a
/// limit of the model forbids it, and as square as that allows. Its source is the smallest found.
/// Some thousand calls of plan_image at most for `wanted` of 10,000.
/// @param wanted >= 1. @param num_frames above 0 searches videos of so many frames instead, through
/// plan_video. @throws Error(kUnsupported) for videos if the model takes none.
[[nodiscard]] NearestImages find_images(const EncoderGraphModel& model, std::int64_t wanted,
                                        const ImageCount& count, std::int64_t num_frames = 0);

/// The image with the most tokens on a path, up to `tokens`; absent if every image has more or
/// none.
[[nodiscard]] std::optional<ItemPlan> fullest_image(const EncoderGraphModel& model, PathId path,
                                                    std::int64_t tokens);

}  // namespace fovea
