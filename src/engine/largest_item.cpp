// How many patches the largest item has that a model makes of what the limits let through.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "checkpoint/hf_config.h"
#include "core/boundary.h"
#include "core/interrupt.h"
#include "engine/family_options.h"
#include "fovea/engine.h"
#include "models/load_model.h"
#include "models/registry.h"

namespace fovea {
namespace {

using Size = std::pair<std::int64_t, std::int64_t>;

/// The largest images of some aspect ratios: families that cut an image into tiles make most of
/// them at the ratio of one of their canvases, of which none has more than 16 tiles a side.
std::vector<Size> largest_sizes(const MediaLimits& limits) {
  constexpr int kMostTiles = 16;
  const auto area = static_cast<double>(limits.max_image_pixels);
  const auto most = static_cast<double>(limits.max_image_side_px);
  std::vector<Size> sizes;
  for (int columns = 1; columns <= kMostTiles; ++columns) {
    for (int rows = 1; rows <= kMostTiles; ++rows) {
      const double width = std::min(most, std::floor(std::sqrt(area * columns / rows)));
      const double height = std::min(most, std::floor(area / width));
      sizes.emplace_back(static_cast<std::int64_t>(width), static_cast<std::int64_t>(height));
    }
  }
  return sizes;
}

/// 0 where the model takes no such item.
std::int64_t patches_of(const std::function<ItemPlan()>& plan) {
  try {
    return plan().spec.input_rows;
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInvalidArgument || error.code() == ErrorCode::kUnsupported) {
      return 0;
    }
    throw;
  }
}

/// Frames that the model samples of a video that lasts for hours; 0: it takes no videos.
std::int64_t most_frames(const ItemProcessor& processor, const MediaLimits& limits) {
  constexpr std::int64_t kTotal = std::int64_t{1} << 20;
  constexpr double kVideoFps = 30;
  constexpr double kTargetFps = 2;
  try {
    return std::min(std::ssize(processor.sample_frames(kTotal, kVideoFps, kTargetFps)),
                    static_cast<std::ptrdiff_t>(limits.max_video_frames));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnsupported) throw;
    return 0;
  }
}

}  // namespace

std::int64_t largest_item_patches(const std::string& model, const EngineOptions& options,
                                  const CallBounds& bounds) try {
  const CallScope scope(bounds, "largest_item_patches");
  const checkpoint::HfConfig files = read_model_files(model, options);
  check_family_options(files, options);
  const auto planner = plan_model(files, options.media, tower_output(options));
  const ItemProcessor& processor = planner->processor();
  const MediaLimits& limits = options.media.limits;
  const std::int64_t frames = most_frames(processor, limits);
  std::int64_t most = 1;
  for (const Size& size : largest_sizes(limits)) {
    const auto image = [&] { return processor.plan_image(size.first, size.second); };
    most = std::max(most, patches_of(image));
    // With more frames each of them is smaller, so the most patches need not be those of all.
    for (std::int64_t count = frames; count > 0; count /= 2) {
      const auto video = [&] { return processor.plan_video(count, size.first, size.second); };
      most = std::max(most, patches_of(video));
    }
  }
  return most;
} catch (...) {
  rethrow_as_error();
}

}  // namespace fovea
