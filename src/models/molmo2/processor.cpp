// From images to a view of the whole and overlapping crops, and from frames to views.
#include "models/molmo2/processor.h"

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "media/resize/resize_plain.h"
#include "models/common/config_reader.h"
#include "models/common/frames.h"

namespace fovea::molmo2 {

namespace {

constexpr std::int64_t kMaxCrops = 1024;  // far above the 24 of published checkpoints
constexpr std::int64_t kMaxPooling = 64;

/// Reads a list of two numbers, at least `least`.
void read_pair(const JsonView& file, const char* key, std::int64_t least, std::int64_t most,
               std::int64_t& first, std::int64_t& second) {
  const auto list = file.find(key);
  if (!list) return;
  const std::vector<JsonView> numbers = common::elements_of(*list, 2);
  for (const JsonView& number : numbers) {
    FOVEA_CHECK(number.as_int() >= least && number.as_int() <= most, kCorruptData, number.path(),
                ": expected a number in [", least, ", ", most, "], got ", number.as_int());
  }
  first = numbers[0].as_int();
  second = numbers[1].as_int();
}

/// Reads the keys that files of images and of videos both have.
void read_views(const JsonView& file, const common::SquareView& view, PoolingSize& pooling) {
  common::check_size(file, view.side_px);
  common::require_number(file, "patch_size", static_cast<double>(view.patch_px));
  common::require_number(file, "resample", 2);  // bilinear
  read_pair(file, "pooling_size", 1, kMaxPooling, pooling.rows, pooling.cols);
}

void read_video_file(const JsonView& file, Processing& p) {
  read_views(file, p.views.view, p.video_pooling);
  p.max_frames = common::read_size(file, "num_frames", p.max_frames);
  // The reference's class for videos neither rescales nor normalises unless its file says so.
  const bool rescales = file.bool_or("do_rescale", false);
  FOVEA_CHECK(rescales == file.bool_or("do_normalize", false), kUnsupported, file.path(),
              ": do_rescale without do_normalize, or the reverse, is not supported");
  p.raw_videos = !rescales;
  if (p.raw_videos) return;
  const common::PixelScaling& images = p.views.scaling;
  p.views.video_refusal = common::video_refusal(
      file, common::differing_keys(images, common::read_scaling(file, images)));
}

void resize(const RgbView& image, std::int64_t width_px, std::int64_t height_px,
            std::span<std::uint8_t> out) {
  media::resize_rgb_plain(
      {.src = {image.rgb, static_cast<std::size_t>(image.width_px * image.height_px * 3)},
       .src_width_px = image.width_px,
       .src_height_px = image.height_px,
       .dst = out,
       .dst_width_px = width_px,
       .dst_height_px = height_px});
}

/// How much an image grows to fill its crops, in the arithmetic of the reference.
float scale_of(const Processing& p, common::Tiling tiling, std::int64_t width_px,
               std::int64_t height_px) {
  const std::int64_t patch = p.views.view.patch_px;
  const auto scale = [&](std::int64_t crops, std::int64_t side_px) {
    return static_cast<float>(crops * p.overlap.window() * patch) /
           static_cast<float>(side_px - p.overlap.margin() * patch);  // may be 0 or below
  };
  return std::min(scale(tiling.rows, height_px), scale(tiling.cols, width_px));
}

}  // namespace

Processing read_processing(const checkpoint::HfConfig& files, const Config& config) {
  Processing p{.views = {.view = config.tower.view}, .overlap = {.crop = config.tower.view.grid()}};
  Overlap& overlap = p.overlap;
  const auto image = files.image_processor();
  const auto video = files.video_processor();
  if (image) {
    read_views(*image, p.views.view, p.image_pooling);
    p.max_crops = common::read_size(*image, "max_crops", p.max_crops, kMaxCrops);
    read_pair(*image, "overlap_margins", 0, overlap.crop, overlap.left, overlap.right);
    p.views.scaling = common::read_scaling(*image, p.views.scaling);
  }
  FOVEA_CHECK(overlap.window() >= 1, kUnsupported, (image ? *image : files.config.root()).path(),
              ".overlap_margins: ", overlap.left, " and ", overlap.right, " leave nothing of ",
              overlap.crop, " patches");
  if (video) read_video_file(*video, p);
  const common::PixelScaling& scaling = p.views.scaling;
  p.views.assumptions = common::missing_text(
      files, {common::assumed(image, "max_crops", cat(p.max_crops)),
              common::assumed(image, "image_mean", common::channel_text(scaling.image_mean)),
              common::assumed(image, "image_std", common::channel_text(scaling.image_std))});
  p.views.sources = common::sources_text(
      image, {"max_crops", "overlap_margins", "pooling_size", "image_mean", "image_std"}, video,
      {"pooling_size", "num_frames", "do_rescale", "do_normalize"});
  return p;
}

Processor::Processor(const Processing& processing)
    : ViewProcessor(processing.views), p_(processing) {
  for (std::int64_t count = 1; count <= p_.max_crops; ++count) {
    for (std::int64_t rows = 1; rows <= count; ++rows) {
      if (count % rows == 0) tilings_.push_back({.cols = count / rows, .rows = rows});
    }
  }
}

ItemPlan Processor::plan_image(std::int64_t width_px, std::int64_t height_px) const {
  common::check_area(width_px, height_px);
  // The least that enlarges the image, or else what shrinks it least.
  const auto cost = [&](common::Tiling tiling) {
    const float scale = scale_of(p_, tiling, width_px, height_px);
    return std::pair(scale < 1, scale < 1 ? -scale : scale);
  };
  const common::Tiling tiling = std::ranges::min(tilings_, {}, cost);
  const common::SquareView& view = p_.views.view;
  ItemPlan plan = common::plan_views(width_px, height_px, tiling, {{view, 1 + tiling.count()}});
  plan.resized_width_px = view.side_px;
  plan.resized_height_px = view.side_px;
  common::set_units(1, image_tokens(tiling), plan);
  return plan;
}

ItemPlan Processor::plan_video(std::int64_t num_frames, std::int64_t width_px,
                               std::int64_t height_px) const {
  ItemPlan plan = plan_frames(num_frames, width_px, height_px);
  plan.target_width_px = 0;  // what resizes without antialiasing takes frames at full size alone
  plan.target_height_px = 0;
  common::set_units(num_frames, num_frames * frame_tokens(), plan);
  return plan;
}

std::vector<std::int64_t> Processor::sample_frames(std::int64_t total_frames, double video_fps,
                                                   double target_fps) const {
  FOVEA_CHECK(p_.views.video_refusal.empty(), kUnsupported, p_.views.video_refusal);
  FOVEA_CHECK(total_frames >= 1 && target_fps > 0, kInvalidArgument, "cannot sample ", total_frames,
              " frames at ", target_fps, " frames per second");
  const double fps = video_fps > 0 ? video_fps : target_fps;
  return common::stepped_frames(
      total_frames, std::min(p_.max_frames, common::frames_at(total_frames, fps, target_fps)));
}

void Processor::fill_frame(const ItemPlan& plan, std::int64_t index, const RgbView& frame,
                           std::span<std::uint8_t> out) const {
  common::check_frame(plan, index, frame, out);
  const common::SquareView& view = p_.views.view;
  out = out.subspan(static_cast<std::size_t>(index) * view.pixel_bytes());
  resize(frame, view.side_px, view.side_px, out.first(view.pixel_bytes()));
  if (plan.modality == Modality::kVideo) return;
  media::Image canvas{p_.overlap.side(plan.grid[2]) * view.patch_px,
                      p_.overlap.side(plan.grid[1]) * view.patch_px,
                      {}};
  canvas.rgb.resize(static_cast<std::size_t>(canvas.width_px * canvas.height_px * 3));
  resize(frame, canvas.width_px, canvas.height_px, canvas.rgb);
  const std::int64_t step = p_.overlap.window() * view.patch_px;
  for (std::int64_t crop = 0; crop < plan.grid[1] * plan.grid[2]; ++crop) {
    out = out.subspan(view.pixel_bytes());
    common::cut_square(common::view_of(canvas), crop % plan.grid[2] * step,
                       crop / plan.grid[2] * step, view.side_px, out.first(view.pixel_bytes()));
  }
}

void Processor::add_tokens(const ItemPlan& plan, std::int64_t units, std::int64_t first,
                           TokenPatches& to) const {
  const bool is_video = plan.modality == Modality::kVideo;
  const PoolingSize& pooling = is_video ? p_.video_pooling : p_.image_pooling;
  for (std::int64_t unit = 0; unit < units; ++unit, first += p_.views.view.patches()) {
    add_crops(first, {}, p_.overlap, pooling, to);
  }
  if (is_video) return;
  add_crops(first, {.cols = plan.grid[2], .rows = plan.grid[1]}, p_.overlap, pooling, to);
}

std::int64_t Processor::image_tokens(common::Tiling tiling) const {
  return pooled_tokens({}, p_.overlap, p_.image_pooling) +
         pooled_tokens(tiling, p_.overlap, p_.image_pooling);
}

std::int64_t Processor::frame_tokens() const {
  return pooled_tokens({}, p_.overlap, p_.video_pooling);
}

std::int64_t Processor::most_views(std::int64_t tokens) const {
  std::int64_t most = std::max<std::int64_t>(1, tokens / frame_tokens());
  for (const common::Tiling tiling : tilings_) {
    // Items with this ratio alone; the largest ratio bounds any mix of items.
    most = std::max(most, tokens * (1 + tiling.count()) / image_tokens(tiling));
  }
  return most;
}

}  // namespace fovea::molmo2
