// Host side of MiniCPM-V 4.6: a view of the whole image, and slices of large ones.
#include "models/minicpmv4_6/processor.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/check.h"
#include "models/common/config_reader.h"
#include "models/common/frames.h"
#include "models/common/grid/processor_file.h"
#include "models/common/processor_file.h"

namespace fovea::minicpmv4_6 {

namespace {

using common::GridGeometry;
using common::Size2d;
using common::Tiling;

double as_double(std::int64_t value) { return static_cast<double>(value); }

/// The multiple of `unit` nearest to a side, half to even; at least one.
std::int64_t nearest(double side, std::int64_t unit) {
  return std::max(unit, static_cast<std::int64_t>(std::nearbyint(side / as_double(unit))) * unit);
}

/// A view of the shape of a part of an image, about as large as a square of `scale` pixels; smaller
/// parts are enlarged only if `grows`. Sides are whole tokens.
Size2d view_size(double height, double width, std::int64_t scale, std::int64_t token_px,
                 bool grows) {
  if (grows || height * width > as_double(scale * scale)) {
    const double ratio = width / height;
    height = std::trunc(as_double(scale) / std::sqrt(ratio));
    width = std::trunc(height * ratio);
  }
  return {nearest(height, token_px), nearest(width, token_px)};
}

/// The slices of an image: their number follows from its area, or is one off, and their grid is
/// that whose shape is nearest to the image's. One: there are none.
Tiling slices_of(std::int64_t height_px, std::int64_t width_px, const Slicing& s) {
  const double area = as_double(width_px) * as_double(height_px);
  const double wanted = std::ceil(area / as_double(s.scale_resolution * s.scale_resolution));
  const auto multiple = static_cast<std::int64_t>(std::min(wanted, as_double(s.max_slice_nums)));
  if (!s.slice_mode || multiple <= 1) return {};
  const double shape = std::log(as_double(width_px) / as_double(height_px));
  Tiling best;
  double least = std::numeric_limits<double>::infinity();
  for (const std::int64_t count : {multiple - 1, multiple, multiple + 1}) {
    if (count == 1 || count > s.max_slice_nums) continue;
    for (std::int64_t rows = 1; rows <= count; ++rows) {
      if (count % rows != 0) continue;
      const Tiling grid{.cols = count / rows, .rows = rows};
      const double error = std::abs(shape - std::log(as_double(grid.cols) / as_double(rows)));
      if (error < least || (error == least && rows > best.rows)) best = grid;
      least = std::min(least, error);
    }
  }
  return best;
}

/// The views of a frame: all of it, and then its slices, where plan.grid has several.
std::vector<ItemPlan> views_of(const Slicing& s, const GridGeometry& g, const ItemPlan& plan) {
  const auto [frames, rows, cols] = plan.grid;
  const bool is_cut = rows * cols > 1;
  const double height = as_double(plan.source_height_px);
  const double width = as_double(plan.source_width_px);
  const auto view = [&](double part_height, double part_width, bool grows) {
    return common::plan_view(
        g, view_size(part_height, part_width, s.scale_resolution, g.resize_factor(), grows));
  };
  const auto part = [](double side, std::int64_t parts) {
    return as_double(nearest(side, parts)) / as_double(parts);
  };
  std::vector<ItemPlan> views{view(height, width, !is_cut)};
  if (is_cut) {
    views.insert(views.end(), static_cast<std::size_t>(rows * cols),
                 view(part(height, rows), part(width, cols), true));
  }
  return views;
}

/// @return what `file` says of slices. Changes `scaling` to what it says of values.
Slicing read_file(const JsonView& file, const GridGeometry& g, common::PixelScaling& scaling) {
  common::check_tower_size(file, "patch_size", g.patch_size);
  common::require_text(file, "downsample_mode", "16x");
  common::require_number(file, "resample", 3);  // bicubic
  scaling = common::read_scaling(file, scaling);
  Slicing s;
  s.max_slice_nums = common::read_size(file, "max_slice_nums", s.max_slice_nums, common::kMaxDepth);
  s.scale_resolution = common::read_size(file, "scale_resolution", s.scale_resolution);
  s.slice_mode = file.bool_or("slice_mode", s.slice_mode);
  s.max_num_frames = common::read_size(file, "max_num_frames", s.max_num_frames);
  FOVEA_CHECK(s.scale_resolution >= 2 * g.resize_factor(), kUnsupported, file.path(),
              ".scale_resolution: expected at least ", 2 * g.resize_factor(), ", got ",
              s.scale_resolution);
  return s;
}

/// A frame a second, or for videos of more seconds than `most`, as many of those that are a tenth
/// of a second apart. An unknown rate counts as 24.
std::vector<std::int64_t> sample_frames(std::int64_t most, std::int64_t total, double video_fps) {
  const double fps = video_fps > 0 ? video_fps : common::kUnknownFps;
  const double seconds = as_double(total) / fps;
  const bool is_long = seconds > as_double(most);
  const auto tenths = static_cast<std::int64_t>(seconds / 0.1);
  const auto count =
      is_long ? std::min(most, tenths) : static_cast<std::int64_t>(std::ceil(seconds));
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < count; ++i) {
    const double second = is_long
                              ? std::trunc(common::spaced(0, as_double(tenths - 1), count, i)) / 10
                              : as_double(i);
    indices.push_back(std::min(static_cast<std::int64_t>(second * fps), total - 1));
  }
  return indices;
}

ItemPlan plan_frames(const Processing& p, Modality modality, std::int64_t num_frames,
                     std::int64_t width_px, std::int64_t height_px) {
  common::check_area(width_px, height_px);
  const Tiling slices =
      slices_of(height_px, width_px, modality == Modality::kImage ? p.image : p.video);
  ItemPlan plan;
  plan.modality = modality;
  plan.source_width_px = width_px;
  plan.source_height_px = height_px;
  plan.num_frames = num_frames;
  plan.grid = {num_frames, slices.rows, slices.cols};
  const std::vector<ItemPlan> views = p.grid.views_of(plan);
  plan.resized_width_px = slices.cols * views.back().resized_width_px;
  plan.resized_height_px = slices.rows * views.back().resized_height_px;
  plan.target_width_px = std::max(plan.resized_width_px, views.front().resized_width_px);
  plan.target_height_px = std::max(plan.resized_height_px, views.front().resized_height_px);
  for (const ItemPlan& view : views) {
    FOVEA_CHECK(view.spec.input_rows >= p.grid.least_view_tokens * p.grid.geometry.merge_area(),
                kInvalidArgument, "image of ", width_px, "x", height_px,
                " pixels is too thin: a view of it would be ", view.resized_width_px, "x",
                view.resized_height_px);
  }
  common::count_views(p.grid.geometry, views, plan);
  return plan;
}

/// Assumptions and sources, for the log.
void note_sources(const checkpoint::HfConfig& files, Processing& p) {
  const auto image = files.image_processor();
  const auto video = files.video_processor();
  p.grid.assumptions = common::missing_text(
      files, {common::assumed(image, "max_slice_nums", cat(p.image.max_slice_nums)),
              common::assumed(image, "scale_resolution", cat(p.image.scale_resolution))});
  p.grid.sources = common::sources_text(
      image, {"max_slice_nums", "scale_resolution", "slice_mode", "image_mean", "image_std"}, video,
      {"max_slice_nums", "scale_resolution", "slice_mode", "max_num_frames"});
}

}  // namespace

Processing read_processing(const checkpoint::HfConfig& files, const GridGeometry& geometry,
                           const MediaOptions& media) {
  Processing p{.grid = {.geometry = geometry,
                        .engine = common::resize_engine(media, media::ResizeEngine::kTorchvision),
                        .has_grid_thw = false}};
  const auto image = files.image_processor();
  const auto video = files.video_processor();
  if (image) p.image = read_file(*image, geometry, p.grid.scaling);
  if (video) {
    common::PixelScaling scaling;
    p.video = read_file(*video, geometry, scaling);
    p.grid.video_refusal =
        common::video_refusal(*video, common::differing_keys(scaling, p.grid.scaling));
    if (video->int_or("stack_frames", 1) != 1) {
      p.grid.video_refusal = cat(video->path(), ".stack_frames: only 1 is supported");
    }
  }
  const auto area = [](const Slicing& s) { return s.scale_resolution * s.scale_resolution; };
  p.grid.limits = {.image = {area(p.image), area(p.image) * (p.image.max_slice_nums + 1)},
                   .video = {area(p.video), area(p.video) * (p.video.max_slice_nums + 1)}};
  // Sizes are those of views, not of whole frames: this says that there are videos.
  p.grid.video_size = [](std::int64_t, std::int64_t, std::int64_t) { return Size2d{}; };
  p.grid.views_of = [=, of_image = p.image, of_video = p.video](const ItemPlan& plan) {
    return views_of(plan.modality == Modality::kImage ? of_image : of_video, geometry, plan);
  };
  // A view of the area of a square of this scale is at least almost as long as it, unless its other
  // side is shorter than a pixel; rounding to whole tokens takes half a token at most.
  const std::int64_t scale = std::min(p.image.scale_resolution, p.video.scale_resolution);
  p.grid.least_view_tokens = std::max<std::int64_t>(1, (scale - 4) / geometry.resize_factor());
  p.grid.sample_frames = [most = p.video.max_num_frames](std::int64_t total, double video_fps,
                                                         double) {
    return sample_frames(most, total, video_fps);
  };
  note_sources(files, p);
  return p;
}

ItemPlan Processor::plan_image(std::int64_t width_px, std::int64_t height_px) const {
  return plan_frames(p_, Modality::kImage, 1, width_px, height_px);
}

ItemPlan Processor::plan_video(std::int64_t num_frames, std::int64_t width_px,
                               std::int64_t height_px) const {
  FOVEA_CHECK(p_.grid.video_refusal.empty(), kUnsupported, p_.grid.video_refusal);
  return plan_frames(p_, Modality::kVideo, num_frames, width_px, height_px);
}

void Processor::fill_frame(const ItemPlan& plan, std::int64_t index, const RgbView& frame,
                           std::span<std::uint8_t> out) const {
  common::check_frame(plan, index, frame, out);
  const common::GridProcessing& grid = p_.grid;
  const std::vector<ItemPlan> views = grid.views_of(plan);
  const std::size_t frame_bytes = plan.unit_bytes[0];
  out = out.subspan(static_cast<std::size_t>(index) * frame_bytes, frame_bytes);
  const ItemPlan& whole = views.front();
  common::resize(frame, whole.resized_width_px, whole.resized_height_px, grid.engine, grid.filter,
                 out.first(whole.pixel_bytes));
  if (views.size() == 1) return;
  const media::Image canvas = common::resized(frame, plan.resized_width_px, plan.resized_height_px,
                                              grid.engine, grid.filter);
  common::cut_tiles(common::view_of(canvas), {.cols = plan.grid[2], .rows = plan.grid[1]},
                    {views.back().resized_height_px, views.back().resized_width_px},
                    out.subspan(whole.pixel_bytes));
}

}  // namespace fovea::minicpmv4_6
