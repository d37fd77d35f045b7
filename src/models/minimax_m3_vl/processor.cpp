// Host side of MiniMax-M3: sizes as Qwen2-VL has them, and segments of videos.
#include "models/minimax_m3_vl/processor.h"

#include <algorithm>

#include "core/check.h"
#include "models/common/config_reader.h"
#include "models/common/frames.h"
#include "models/common/grid/processor_file.h"
#include "models/common/processor_file.h"

namespace fovea::minimax_m3_vl {

namespace {

using common::PixelRange;

/// Defaults of the reference's classes.
constexpr PixelRange kImages{4 * 28 * 28, 451584};
constexpr PixelRange kFrames{4 * 28 * 28, 768 * 28 * 28};

/// Bounds of sampled frames, named as in the processor file of videos.
struct Sampling {
  std::int64_t min_frames = 4;
  std::int64_t max_frames = 768;
};

void check_file(const JsonView& file, const common::GridGeometry& g) {
  common::check_tower_size(file, "patch_size", g.patch_size);
  common::check_tower_size(file, "temporal_patch_size", g.temporal_patch_size);
  common::check_tower_size(file, "merge_size", g.spatial_merge_size);
  common::require_number(file, "resample", 3);  // bicubic
}

/// min_pixels and max_pixels, which count before the edges of `size`. A `size` that is no object of
/// edges, as released files have it, says nothing.
PixelRange read_range(const JsonView& file, PixelRange range, bool has_edges) {
  const auto read = [&](std::string_view edge, std::string_view pixels, std::int64_t& field) {
    auto value = file.find(pixels);
    const auto size = file.find("size");
    if (!value && has_edges && size && size->is_object()) value = size->find(edge);
    if (value) field = value->as_int();
  };
  read("shortest_edge", "min_pixels", range.min_pixels);
  read("longest_edge", "max_pixels", range.max_pixels);
  constexpr std::int64_t kMost = std::int64_t{1} << 40;
  FOVEA_CHECK(
      range.min_pixels > 0 && range.min_pixels <= range.max_pixels && range.max_pixels <= kMost,
      kCorruptData, file.path(), ": expected 0 < min_pixels <= max_pixels <= ", kMost, ", got ",
      range.min_pixels, " and ", range.max_pixels);
  return range;
}

/// Temporal patches of a segment; 0 where the file says null, which means all of a video.
std::int64_t read_segment(const JsonView& file, std::int64_t fallback) {
  constexpr std::string_view kKey = "vision_segment_max_frames";
  const bool is_there = std::ranges::count(file.keys(), kKey) > 0;
  if (is_there && !file.find(kKey)) return 0;
  return common::read_size(file, kKey, fallback);
}

/// Frames at `target_fps` within bounds, evenly from the first. An unknown rate counts as 24.
std::vector<std::int64_t> sample_frames(const Sampling& bounds, std::int64_t total,
                                        double video_fps, double target_fps) {
  const double fps = video_fps > 0 ? video_fps : common::kUnknownFps;
  const double wanted = static_cast<double>(total) / fps * target_fps;
  const double bounded =
      std::clamp(wanted, static_cast<double>(std::min(bounds.min_frames, bounds.max_frames)),
                 static_cast<double>(bounds.max_frames));
  const double count = std::clamp(bounded, 1.0, static_cast<double>(total));
  return common::stepped_frames(total, static_cast<std::int64_t>(count));
}

void describe(const checkpoint::HfConfig& files, common::GridProcessing& p) {
  const auto image = files.image_processor();
  const auto video = files.video_processor();
  p.assumptions = common::missing_text(
      files, {common::assumed(image, "image_mean", common::channel_text(p.scaling.image_mean)),
              common::assumed(image, "image_std", common::channel_text(p.scaling.image_std))});
  p.sources = common::sources_text(
      image, {"size", "min_pixels", "max_pixels", "image_mean", "image_std"}, video,
      {"min_pixels", "max_pixels", "min_frames", "max_frames", "vision_segment_max_frames"});
}

}  // namespace

Processing read_processing(const checkpoint::HfConfig& files, const Config& config,
                           const MediaOptions& media) {
  const common::GridGeometry& geometry = config.grid;
  Processing result{.grid = {}, .vision_segment_max_frames = config.vision_segment_max_frames};
  common::GridProcessing& p = result.grid;
  p.geometry = geometry;
  p.limits = {.image = kImages, .video = kFrames};
  p.scaling = common::kClipScaling;
  p.engine = common::resize_engine(media, media::ResizeEngine::kTorchvision);
  Sampling sampling;
  if (const auto image = files.image_processor()) {
    check_file(*image, geometry);
    p.limits.image = read_range(*image, kImages, true);
    p.scaling = common::read_scaling(*image, p.scaling);
  }
  if (const auto video = files.video_processor()) {
    check_file(*video, geometry);
    p.limits.video = read_range(*video, kFrames, false);
    const common::PixelScaling scaling = common::read_scaling(*video, common::kClipScaling);
    p.video_refusal = common::video_refusal(*video, common::differing_keys(scaling, p.scaling));
    sampling.min_frames = common::read_size(*video, "min_frames", sampling.min_frames);
    sampling.max_frames = common::read_size(*video, "max_frames", sampling.max_frames);
    result.vision_segment_max_frames = read_segment(*video, config.vision_segment_max_frames);
  }
  describe(files, p);
  const std::int64_t factor = geometry.resize_factor();
  p.image_size = [factor, range = p.limits.image](std::int64_t height_px, std::int64_t width_px) {
    return common::smart_resize_image(height_px, width_px, factor, range);
  };
  p.video_size = [factor, range = p.limits.video](std::int64_t, std::int64_t height_px,
                                                  std::int64_t width_px) {
    return common::smart_resize_image(height_px, width_px, factor, range);
  };
  p.sample_frames = [sampling](std::int64_t total, double video_fps, double target_fps) {
    return sample_frames(sampling, total, video_fps, target_fps);
  };
  return result;
}

std::int64_t Processor::segment_of(const ItemPlan& plan) const {
  return segment_ == 0 ? plan.grid[0] : std::min(segment_, plan.grid[0]);
}

ItemPlan Processor::in_segments(ItemPlan plan) const {
  const std::int64_t t = plan.grid[0];
  const std::int64_t segment = segment_of(plan);
  const std::int64_t count = (t + segment - 1) / segment;
  const bool is_even = t % segment == 0;
  plan.spec.num_seqs = count;
  plan.spec.units[0] = {is_even ? count : 1, plan.spec.input_rows / (is_even ? count : 1),
                        plan.spec.out_rows / (is_even ? count : 1)};
  // Those of a temporal patch so far. A last odd frame makes the last unit shorter.
  plan.unit_bytes[0] =
      is_even ? std::min(plan.pixel_bytes, plan.unit_bytes[0] * static_cast<std::size_t>(segment))
              : plan.pixel_bytes;
  return plan;
}

ItemPlan Processor::plan_video(std::int64_t num_frames, std::int64_t width_px,
                               std::int64_t height_px) const {
  return in_segments(GridProcessor::plan_video(num_frames, width_px, height_px));
}

ItemPlan Processor::plan_grid(Modality modality, const std::array<std::int64_t, 3>& grid) const {
  return in_segments(GridProcessor::plan_grid(modality, grid));
}

}  // namespace fovea::minimax_m3_vl
