// Host side of Nemotron Omni: images keep their size within a number of patches, frames of videos
// are brought to a number of patches, and both are resized without rounding to bytes.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>
#include <vector>

#include "core/check.h"
#include "media/resize/resize_fine.h"
#include "models/common/config_reader.h"
#include "models/common/frames.h"
#include "models/common/grid/processor_file.h"
#include "models/common/processor_file.h"
#include "models/nemotron_h_omni/processor.h"

namespace fovea::nemotron_h_omni {

namespace {

using common::Size2d;

constexpr std::int64_t kMaxPatches = std::int64_t{1} << 16;  // far above every published limit
constexpr std::int64_t kMerge = 2;

double as_double(std::int64_t value) { return static_cast<double>(value); }

/// The numbers that decide about sizes, under their names in files.
struct Limits {
  std::int64_t min_num_patches = 1024;  ///< of an image
  std::int64_t max_num_patches = 13312;
  std::int64_t video_target_num_patches = 1024;  ///< of a frame
  bool video_maintain_aspect_ratio = true;
};

/// `side` up to a multiple of kMerge if that keeps the area within `most`, else down to one.
std::int64_t whole_tokens(std::int64_t side, std::int64_t other, std::int64_t most) {
  const std::int64_t remainder = side % kMerge;
  if (remainder == 0) return side;
  const std::int64_t up = side + kMerge - remainder;
  return up * other <= most ? up : std::max(kMerge, side - remainder);
}

/// The grid of an image, in patches.
Size2d image_grid(std::int64_t height_px, std::int64_t width_px, std::int64_t patch,
                  const Limits& limits) {
  common::check_area(width_px, height_px);
  const double least = as_double(limits.min_num_patches);
  const double most = as_double(limits.max_num_patches);
  const auto patches = [&](std::int64_t side_px) {
    return std::nearbyint(as_double(side_px) / as_double(patch) + 0.5);
  };
  double height = patches(height_px);
  double width = patches(width_px);
  const double shrink = std::min(std::sqrt(most / (height * width)), 1.0);
  height = std::floor(shrink * height);
  width = std::floor(shrink * width);
  FOVEA_CHECK(height >= 1 && width >= 1, kInvalidArgument, "image of ", width_px, "x", height_px,
              " pixels is too thin for ", limits.max_num_patches, " patches of ", patch, " pixels");
  if (most > least && height * width < least) {
    const double grow = std::sqrt(least / (height * width));
    height = std::ceil(grow * height);
    width = std::ceil(grow * width);
  }
  Size2d grid{static_cast<std::int64_t>(height), static_cast<std::int64_t>(width)};
  grid.height_px = whole_tokens(grid.height_px, grid.width_px, limits.max_num_patches);
  grid.width_px = whole_tokens(grid.width_px, grid.height_px, limits.max_num_patches);
  return grid;
}

/// The grid of a frame of a video, in patches.
Size2d frame_grid(std::int64_t height_px, std::int64_t width_px, const Limits& limits) {
  common::check_area(width_px, height_px);
  const std::int64_t target = limits.video_target_num_patches;
  const auto down = [](std::int64_t side) { return std::max(kMerge, side - side % kMerge); };
  if (!limits.video_maintain_aspect_ratio) {
    const std::int64_t side = down(static_cast<std::int64_t>(std::sqrt(as_double(target))));
    return {side, side};
  }
  const double aspect = as_double(width_px) / as_double(height_px);
  const auto near = [](double side) {
    return static_cast<std::int64_t>(std::max(std::nearbyint(side), 1.0));
  };
  const std::int64_t height = near(std::sqrt(as_double(target) / aspect));
  const std::int64_t width = near(std::sqrt(as_double(target) * aspect));
  const Size2d up{height + height % kMerge, width + width % kMerge};
  return up.height_px * up.width_px <= target ? up : Size2d{down(height), down(width)};
}

/// Frames at about `target_fps`, evenly spaced: frame i total / count, rounded down. An unknown
/// rate counts as that of common::kUnknownFps.
std::vector<std::int64_t> even_frames(std::int64_t total, double video_fps, double target_fps) {
  const double fps = video_fps > 0 ? video_fps : common::kUnknownFps;
  const std::int64_t count = common::frames_at(total, fps, target_fps);
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < count; ++i) {
    indices.push_back(i * (total / count) + i * (total % count) / count);
  }
  return indices;
}

/// Mean and deviation under both of their names, of which that of transformers comes first.
common::PixelScaling read_norms(const JsonView& file, common::PixelScaling scaling) {
  scaling.image_mean = common::read_channels(file, "norm_mean", scaling.image_mean);
  scaling.image_std = common::read_positive_channels(file, "norm_std", scaling.image_std);
  return common::read_scaling(file, scaling);
}

void check_geometry(const JsonView& file, const Config& config) {
  common::check_tower_size(file, "patch_size", config.grid.patch_size);
  common::require_number(file, "downsample_ratio", 0.5);
}

/// The least and the most patches of an image. 0 is no limit.
void read_range(const JsonView& object, Limits& limits) {
  const auto read = [&](const char* key, std::int64_t fallback) {
    return common::read_size(object, key, fallback, kMaxPatches);
  };
  limits.min_num_patches = read("min_num_patches", limits.min_num_patches);
  const auto most = object.find("max_num_patches");
  const bool unlimited = most && most->is_integer() && most->as_int() == 0;
  limits.max_num_patches =
      unlimited ? kMaxPatches : read("max_num_patches", limits.max_num_patches);
}

void read_target(const JsonView& object, Limits& limits) {
  limits.video_target_num_patches = common::read_size(object, "video_target_num_patches",
                                                      limits.video_target_num_patches, kMaxPatches);
  limits.video_maintain_aspect_ratio =
      object.bool_or("video_maintain_aspect_ratio", limits.video_maintain_aspect_ratio);
}

/// The limits of the processor files, or of config.json, whose arguments of the training program
/// know them, too.
Limits read_limits(const checkpoint::HfConfig& files) {
  constexpr std::int64_t kText = 4;
  Limits limits;
  std::int64_t context = 16384;  // of the language model, in rows of which some are text
  const JsonView vision = files.config.root().at("vision_config");
  if (const auto args = vision.find("args")) read_range(*args, limits);
  if (const auto image = files.image_processor()) {
    read_range(*image, limits);
    context = common::read_size(*image, "max_model_len", context, std::int64_t{1} << 40);
  }
  limits.max_num_patches =
      std::clamp(std::min((context - kText) * kMerge * kMerge, limits.max_num_patches),
                 limits.min_num_patches, kMaxPatches);
  read_target(vision, limits);
  if (const auto video = files.video_processor()) read_target(*video, limits);
  return limits;
}

/// Sets what depends on the limits.
void set_sizes(const Limits& limits, common::GridProcessing& p) {
  const std::int64_t patch = p.geometry.patch_size;
  const std::int64_t area = patch * patch;
  p.limits = {.image = {limits.min_num_patches * area, limits.max_num_patches * area},
              .video = {area, limits.video_target_num_patches * area}};
  // Rounding to whole tokens takes less than half of each side, and no side below a token.
  const std::int64_t most = std::min(limits.max_num_patches, limits.video_target_num_patches);
  const bool grows = limits.max_num_patches > limits.min_num_patches;
  const std::int64_t least = grows ? std::min(limits.min_num_patches, most) / 4 : 0;
  p.least_view_tokens = std::max<std::int64_t>(1, least / p.geometry.merge_area());
  const auto in_pixels = [patch](Size2d grid) {
    return Size2d{grid.height_px * patch, grid.width_px * patch};
  };
  p.image_size = [=](std::int64_t height_px, std::int64_t width_px) {
    return in_pixels(image_grid(height_px, width_px, patch, limits));
  };
  p.video_size = [=](std::int64_t, std::int64_t height_px, std::int64_t width_px) {
    return in_pixels(frame_grid(height_px, width_px, limits));
  };
  p.sample_frames = &even_frames;
}

void describe_files(const checkpoint::HfConfig& files, common::GridProcessing& p) {
  const auto image = files.image_processor();
  const auto assumed = [&](const char* key, const char* older,
                           const std::array<float, 3>& values) -> common::Assumption {
    return {.given = image && common::find_renamed(*image, key, older),
            .key = key,
            .assumed = cat(key, "=", common::channel_text(values))};
  };
  p.assumptions =
      common::missing_text(files, {assumed("image_mean", "norm_mean", p.scaling.image_mean),
                                   assumed("image_std", "norm_std", p.scaling.image_std)});
  p.sources = common::sources_text(
      image,
      {"min_num_patches", "max_num_patches", "max_model_len", "image_mean", "image_std",
       "norm_mean", "norm_std"},
      files.video_processor(),
      {"video_target_num_patches", "video_maintain_aspect_ratio", "norm_mean", "norm_std"});
}

/// An image or a video whose pixels are levels, of whole pairs of frames.
ItemPlan with_levels(ItemPlan plan) {
  const std::int64_t together = plan.modality == Modality::kVideo ? 2 : 1;
  const auto bytes = checked_mul(plan.grid[0], together * Processor::frame_bytes(plan));
  FOVEA_CHECK(bytes, kInvalidArgument, plan.num_frames,
              " frames: more pixels than one item can have");
  plan.pixel_bytes = static_cast<std::size_t>(*bytes);
  plan.target_width_px = 0;  // filters of floats take frames at full size alone
  plan.target_height_px = 0;
  common::set_units(plan.grid[0], plan.spec.out_rows, plan);
  return plan;
}

}  // namespace

Processing read_processing(const checkpoint::HfConfig& files, const Config& config) {
  Processing result{
      .grid = {.geometry = config.grid, .scaling = common::kClipScaling, .has_grid_thw = false},
      .class_rows = config.class_rows()};
  common::GridProcessing& p = result.grid;
  const auto image = files.image_processor();
  if (image) {
    check_geometry(*image, config);
    common::require_number(*image, "resample", 3);  // bicubic
    p.scaling = read_norms(*image, p.scaling);
  }
  const auto video = files.video_processor();
  if (video) {
    check_geometry(*video, config);
    common::require_number(*video, "temporal_patch_size", 2);
    const common::PixelScaling scaling = read_norms(*video, p.scaling);
    p.video_refusal = common::video_refusal(*video, common::differing_keys(p.scaling, scaling));
  }
  if (config.video_pruning_rate != 0) {
    p.video_refusal =
        cat(files.config.root().path(), ": video_pruning_rate: only 0 is supported, got ",
            config.video_pruning_rate, "; videos are refused");
  }
  set_sizes(read_limits(files), p);
  describe_files(files, p);
  return result;
}

std::int64_t Processor::frame_bytes(const ItemPlan& plan) {
  constexpr auto kLevels = static_cast<std::int64_t>(media::kLevelBytes);
  return kLevels * 3 * plan.resized_height_px * plan.resized_width_px;
}

ItemPlan Processor::plan_image(std::int64_t width_px, std::int64_t height_px) const {
  return with_levels(GridProcessor::plan_image(width_px, height_px));
}

ItemPlan Processor::plan_video(std::int64_t num_frames, std::int64_t width_px,
                               std::int64_t height_px) const {
  return with_levels(GridProcessor::plan_video(num_frames, width_px, height_px));
}

void Processor::fill_frame(const ItemPlan& plan, std::int64_t index, const RgbView& frame,
                           std::span<std::uint8_t> out) const {
  common::check_frame(plan, index, frame, out);
  const auto bytes = static_cast<std::size_t>(frame_bytes(plan));
  const auto to = out.subspan(static_cast<std::size_t>(index) * bytes);
  common::resize_fine(frame, plan.resized_width_px, plan.resized_height_px,
                      media::FineFilter::kBicubic, to.first(bytes));
  if (to.size() == 2 * bytes && index + 1 == plan.num_frames) {  // the first of a pair
    std::ranges::copy(to.first(bytes), to.begin() + static_cast<std::ptrdiff_t>(bytes));
  }
}

}  // namespace fovea::nemotron_h_omni
