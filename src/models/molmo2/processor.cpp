// From images to a view of the whole and overlapping crops, and from frames to views.
#include "models/molmo2/processor.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "core/check.h"
#include "media/resize/resize_plain.h"
#include "models/common/config_reader.h"
#include "models/common/frames.h"
#include "models/common/grid/processor_file.h"

namespace fovea::molmo2 {

namespace {

constexpr std::int64_t kMaxCrops = 1024;  // far above the 24 of published checkpoints
constexpr std::int64_t kMaxPooling = 64;

/// A list of two numbers. @param least of them.
std::pair<std::int64_t, std::int64_t> read_pair(const JsonView& file, const char* key,
                                                std::int64_t least, std::int64_t most,
                                                std::pair<std::int64_t, std::int64_t> fallback) {
  const auto list = file.find(key);
  if (!list) return fallback;
  const std::vector<JsonView> numbers = common::elements_of(*list, 2);
  for (const JsonView& number : numbers) {
    FOVEA_CHECK(number.as_int() >= least && number.as_int() <= most, kCorruptData, number.path(),
                ": expected a number in [", least, ", ", most, "], got ", number.as_int());
  }
  return {numbers[0].as_int(), numbers[1].as_int()};
}

PoolingSize read_pooling(const JsonView& file, const PoolingSize& fallback) {
  const auto [rows, cols] =
      read_pair(file, "pooling_size", 1, kMaxPooling, {fallback.rows, fallback.cols});
  return {rows, cols};
}

void check_geometry(const JsonView& file, const common::SquareView& view) {
  common::check_size(file, view.side_px);
  common::require_number(file, "patch_size", static_cast<double>(view.patch_px));
  common::require_number(file, "resample", 2);  // bilinear
}

void read_image_file(const JsonView& file, Processing& p) {
  check_geometry(file, p.view);
  p.max_crops = common::read_size(file, "max_crops", p.max_crops, kMaxCrops);
  std::tie(p.overlap.left, p.overlap.right) =
      read_pair(file, "overlap_margins", 0, p.overlap.crop, {p.overlap.left, p.overlap.right});
  FOVEA_CHECK(p.overlap.window() >= 1, kUnsupported, file.path(),
              ".overlap_margins: ", p.overlap.left, " and ", p.overlap.right, " leave nothing of ",
              p.overlap.crop, " patches");
  p.image_pooling = read_pooling(file, p.image_pooling);
  p.scaling = common::read_scaling(file, p.scaling);
}

void read_video_file(const JsonView& file, Processing& p) {
  check_geometry(file, p.view);
  p.video_pooling = read_pooling(file, p.video_pooling);
  // The reference's class for videos neither rescales nor normalises unless its file says so.
  const bool rescales = file.bool_or("do_rescale", false);
  FOVEA_CHECK(rescales == file.bool_or("do_normalize", false), kUnsupported, file.path(),
              ": do_rescale without do_normalize, or the reverse, is not supported");
  p.raw_videos = !rescales;
  if (p.raw_videos) return;
  const common::PixelScaling scaling = common::read_scaling(file, p.scaling);
  p.video_refusal = common::video_refusal(file, common::differing_keys(p.scaling, scaling));
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

/// Tokens of an image of so many crops, and of the whole of it.
std::int64_t image_tokens(const Processing& p, common::Tiling tiling) {
  return pooled_tokens({}, p.overlap, p.image_pooling) +
         pooled_tokens(tiling, p.overlap, p.image_pooling);
}

std::int64_t frame_tokens(const Processing& p) {
  return pooled_tokens({}, p.overlap, p.video_pooling);
}

/// Calls visit(tiling) for every tiling of up to max_crops crops: fewer crops first, then fewer
/// rows.
template <class Visit>
void for_each_tiling(std::int64_t max_crops, const Visit& visit) {
  for (std::int64_t count = 1; count <= max_crops; ++count) {
    for (std::int64_t rows = 1; rows <= count; ++rows) {
      if (count % rows == 0) visit(common::Tiling{.cols = count / rows, .rows = rows});
    }
  }
}

ItemPlan plan_of(const common::SquareView& view, std::int64_t width_px, std::int64_t height_px,
                 common::Tiling tiling, std::int64_t views) {
  common::check_area(width_px, height_px);
  ItemPlan plan = common::plan_views(width_px, height_px, tiling, {{view, views}});
  plan.resized_width_px = view.side_px;
  plan.resized_height_px = view.side_px;
  return plan;
}

}  // namespace

Processing read_processing(const checkpoint::HfConfig& files, const Config& config) {
  Processing p{.view = config.tower.view, .overlap = {.crop = config.tower.view.grid()}};
  const auto image = files.image_processor();
  const auto video = files.video_processor();
  if (image) read_image_file(*image, p);
  if (video) read_video_file(*video, p);
  FOVEA_CHECK(p.overlap.window() >= 1, kUnsupported, files.config.root().path(), ": crops of ",
              p.overlap.crop, " patches a side do not overlap by ", p.overlap.margin());
  p.assumptions = common::missing_text(
      files, {common::assumed(image, "max_crops", cat(p.max_crops)),
              common::assumed(image, "image_mean", common::channel_text(p.scaling.image_mean)),
              common::assumed(image, "image_std", common::channel_text(p.scaling.image_std))});
  p.sources = common::sources_text(
      image, {"max_crops", "overlap_margins", "pooling_size", "image_mean", "image_std"}, video,
      {"pooling_size", "do_rescale", "do_normalize"});
  return p;
}

common::Tiling choose_tiling(const Processing& p, std::int64_t width_px, std::int64_t height_px) {
  const std::int64_t patch = p.view.patch_px;
  const std::int64_t margin = p.overlap.margin() * patch;
  const auto width = static_cast<float>(width_px - margin);  // may be 0 or below
  const auto height = static_cast<float>(height_px - margin);
  const auto scale_of = [&](common::Tiling tiling) {
    const auto pixels = [&](std::int64_t crops) {
      return static_cast<float>(crops * p.overlap.window() * patch);
    };
    const float across = pixels(tiling.cols) / width;
    const float down = pixels(tiling.rows) / height;
    return std::min(down, across);
  };
  bool enlarges = false;
  for_each_tiling(p.max_crops,
                  [&](common::Tiling tiling) { enlarges = enlarges || !(scale_of(tiling) < 1); });
  constexpr float kWorst = 10e9f;  // of those that shrink, where one enlarges
  common::Tiling best;
  float best_cost = std::numeric_limits<float>::infinity();
  bool first = true;
  for_each_tiling(p.max_crops, [&](common::Tiling tiling) {
    const float scale = scale_of(tiling);
    const float enlarging = scale < 1 ? kWorst : scale;
    const float cost = enlarges ? enlarging : -scale;
    if (first || cost < best_cost) {
      best = tiling;
      best_cost = cost;
    }
    first = false;
  });
  return best;
}

ItemPlan Processor::plan_image(std::int64_t width_px, std::int64_t height_px) const {
  const common::Tiling tiling = choose_tiling(p_, width_px, height_px);
  ItemPlan plan = plan_of(p_.view, width_px, height_px, tiling, 1 + tiling.count());
  common::set_units(1, image_tokens(p_, tiling), plan);
  return plan;
}

ItemPlan Processor::plan_video(std::int64_t num_frames, std::int64_t width_px,
                               std::int64_t height_px) const {
  FOVEA_CHECK(p_.video_refusal.empty(), kUnsupported, p_.video_refusal);
  FOVEA_CHECK(num_frames >= 1 && num_frames <= std::numeric_limits<std::int32_t>::max(),
              kInvalidArgument, "a video of ", num_frames, " frames");
  ItemPlan plan = plan_of(p_.view, width_px, height_px, {}, num_frames);
  plan.modality = Modality::kVideo;
  plan.num_frames = num_frames;
  plan.grid = {num_frames, 1, 1};
  common::set_units(num_frames, num_frames * frame_tokens(p_), plan);
  return plan;
}

std::vector<std::int64_t> Processor::sample_frames(std::int64_t total_frames, double video_fps,
                                                   double target_fps) const {
  FOVEA_CHECK(p_.video_refusal.empty(), kUnsupported, p_.video_refusal);
  FOVEA_CHECK(total_frames >= 1 && target_fps > 0, kInvalidArgument, "cannot sample ", total_frames,
              " frames at ", target_fps, " frames per second");
  const double fps = video_fps > 0 ? video_fps : target_fps;
  return common::stepped_frames(total_frames, common::frames_at(total_frames, fps, target_fps));
}

void Processor::fill_frame(const ItemPlan& plan, std::int64_t index, const RgbView& frame,
                           std::span<std::uint8_t> out) const {
  common::check_frame(plan, index, frame, out);
  const std::size_t view_bytes = p_.view.pixel_bytes();
  const std::int64_t side = p_.view.side_px;
  resize(frame, side, side, out.subspan(static_cast<std::size_t>(index) * view_bytes, view_bytes));
  if (plan.modality == Modality::kVideo) return;
  const std::int64_t patch = p_.view.patch_px;
  media::Image canvas{
      p_.overlap.side(plan.grid[2]) * patch, p_.overlap.side(plan.grid[1]) * patch, {}};
  canvas.rgb.resize(static_cast<std::size_t>(canvas.width_px * canvas.height_px * 3));
  resize(frame, canvas.width_px, canvas.height_px, canvas.rgb);
  const std::int64_t step = p_.overlap.window() * patch;
  for (std::int64_t crop = 0; crop < plan.grid[1] * plan.grid[2]; ++crop) {
    common::cut_square(common::view_of(canvas), crop % plan.grid[2] * step,
                       crop / plan.grid[2] * step, side,
                       out.subspan(static_cast<std::size_t>(1 + crop) * view_bytes, view_bytes));
  }
}

void Processor::add_tokens(const ItemPlan& plan, std::int64_t units, std::int64_t first,
                           TokenPatches& to) const {
  const bool is_video = plan.modality == Modality::kVideo;
  const PoolingSize& pooling = is_video ? p_.video_pooling : p_.image_pooling;
  for (std::int64_t unit = 0; unit < units; ++unit, first += p_.view.patches()) {
    add_crops(first, {}, p_.overlap, pooling, to);
  }
  if (is_video) return;
  add_crops(first, {.cols = plan.grid[2], .rows = plan.grid[1]}, p_.overlap, pooling, to);
}

std::int64_t Processor::most_views(std::int64_t tokens) const {
  std::int64_t most = tokens / frame_tokens(p_);
  for_each_tiling(p_.max_crops, [&](common::Tiling tiling) {
    // Items with this ratio alone; the largest ratio bounds any mix of items.
    most = std::max(most, tokens * (1 + tiling.count()) / image_tokens(p_, tiling));
  });
  return std::max<std::int64_t>(most, 1);
}

}  // namespace fovea::molmo2
