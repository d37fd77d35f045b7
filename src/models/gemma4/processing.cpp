// Host side of Gemma 4: images are made as large as their number of tokens permits.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>

#include "core/check.h"
#include "models/common/config_reader.h"
#include "models/common/frames.h"
#include "models/common/grid/processor_file.h"
#include "models/common/processor_file.h"
#include "models/gemma4/config.h"

namespace fovea::gemma4 {

namespace {

using common::Size2d;

constexpr std::array<std::int64_t, 5> kTokenLimits{70, 140, 280, 560, 1120};  // of the reference
constexpr std::int64_t kImageTokens = 280;  // where a file is silent
constexpr std::int64_t kFrameTokens = 70;
constexpr std::int64_t kFrames = 32;

/// Size of an image that fills `most` tokens of `token_px` pixels a side, rounded down to whole
/// tokens; one too thin for that is one token wide.
Size2d filled_size(std::int64_t height_px, std::int64_t width_px, std::int64_t token_px,
                   std::int64_t most) {
  common::check_area(width_px, height_px);
  const auto height = static_cast<double>(height_px);
  const auto width = static_cast<double>(width_px);
  const double factor =
      std::sqrt(static_cast<double>(most * token_px * token_px) / (height * width));
  const auto whole = [&](double side) {
    return static_cast<std::int64_t>(std::floor(factor * side / static_cast<double>(token_px)));
  };
  Size2d tokens{whole(height), whole(width)};
  if (tokens.height_px == 0) {
    tokens = {1, std::min(width_px / height_px, most)};
  } else if (tokens.width_px == 0) {
    tokens = {std::min(height_px / width_px, most), 1};
  }
  return {tokens.height_px * token_px, tokens.width_px * token_px};
}

/// The same within the tables of positions, which have an entry for each patch of a side.
Size2d checked_size(const Config& c, std::int64_t height_px, std::int64_t width_px,
                    std::int64_t most) {
  const Size2d size = filled_size(height_px, width_px, c.grid.resize_factor(), most);
  const std::int64_t side = std::max(size.height_px, size.width_px) / c.grid.patch_size;
  FOVEA_CHECK(side <= c.position_embedding_size, kInvalidArgument, "image of ", width_px, "x",
              height_px, " pixels would have ", side,
              " patches on a side, the model has positions for ", c.position_embedding_size);
  return size;
}

/// The tower maps bytes to values from -1 to 1 by itself: a file must change nothing before that.
void check_scaling(const JsonView& file) {
  common::require_flag(file, "do_resize", true);
  common::require_flag(file, "do_rescale", true);
  common::require_number(file, "resample", 3);  // bicubic
  common::require_number(file, "rescale_factor", 1.0 / 255.0);
  const auto require = [&](const char* key, const std::array<float, 3>& only) {
    FOVEA_CHECK(common::read_channels(file, key, only) == only, kUnsupported, file.path(), ".", key,
                ": only ", common::channel_text(only), " is supported");
  };
  require("image_mean", {0, 0, 0});
  require("image_std", {1, 1, 1});
}

/// Tokens of an image or a frame. @param file of images or of videos, or absent.
std::int64_t read_tokens(const std::optional<JsonView>& file, const common::GridGeometry& grid,
                         std::int64_t fallback) {
  if (!file) return fallback;
  common::check_tower_size(*file, "patch_size", grid.patch_size);
  common::check_tower_size(*file, "pooling_kernel_size", grid.spatial_merge_size);
  check_scaling(*file);
  const std::int64_t tokens = common::read_size(*file, "max_soft_tokens", fallback);
  FOVEA_CHECK(std::ranges::find(kTokenLimits, tokens) != kTokenLimits.end(), kUnsupported,
              file->path(), ".max_soft_tokens: expected 70, 140, 280, 560 or 1120, got ", tokens);
  return tokens;
}

/// Frames at `target_fps`, evenly from the first, but at most `most`. An unknown rate counts as 24.
std::vector<std::int64_t> sample_frames(std::int64_t most, std::int64_t total, double video_fps,
                                        double target_fps) {
  const double fps = video_fps > 0 ? video_fps : common::kUnknownFps;
  return common::stepped_frames(total, std::min(most, common::frames_at(total, fps, target_fps)));
}

void describe(const checkpoint::HfConfig& files, std::int64_t image_tokens,
              common::GridProcessing& p) {
  const auto image = files.image_processor();
  const auto video = files.video_processor();
  p.assumptions =
      common::missing_text(files, {common::assumed(image, "max_soft_tokens", cat(image_tokens))});
  p.sources =
      common::sources_text(image, {"max_soft_tokens"}, video, {"max_soft_tokens", "num_frames"});
}

}  // namespace

common::GridProcessing read_processing(const checkpoint::HfConfig& files, const Config& config,
                                       const MediaOptions& media) {
  const auto video = files.video_processor();
  const std::int64_t image_tokens = read_tokens(files.image_processor(), config.grid, kImageTokens);
  const std::int64_t frame_tokens = read_tokens(video, config.grid, kFrameTokens);
  const std::int64_t frames = video ? common::read_size(*video, "num_frames", kFrames) : kFrames;
  const std::int64_t pixels = config.grid.resize_factor() * config.grid.resize_factor();
  common::GridProcessing p{
      .geometry = config.grid,
      .limits = {.image = {pixels, image_tokens * pixels},
                 .video = {pixels, frame_tokens * pixels}},
      .engine = common::resize_engine(media, media::ResizeEngine::kTorchvision),
      .has_grid_thw = false};
  describe(files, image_tokens, p);
  p.image_size = [config, image_tokens](std::int64_t height_px, std::int64_t width_px) {
    return checked_size(config, height_px, width_px, image_tokens);
  };
  p.video_size = [config, frame_tokens](std::int64_t, std::int64_t height_px,
                                        std::int64_t width_px) {
    return checked_size(config, height_px, width_px, frame_tokens);
  };
  p.sample_frames = [frames](std::int64_t total, double video_fps, double target_fps) {
    return sample_frames(frames, total, video_fps, target_fps);
  };
  return p;
}

}  // namespace fovea::gemma4
