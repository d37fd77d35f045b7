// From sizes of images to grids, and from frames to resized bytes.
#include "models/common/grid/processor.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "core/check.h"
#include "models/common/frames.h"
#include "models/common/grid/inputs.h"

namespace fovea::common {

namespace {

/// Whether the patch sources, 32-bit offsets, reach all pixels of one temporal patch of a grid. How
/// many of these run together the graphs bound.
bool is_addressable(const GridGeometry& geometry, const std::array<std::int64_t, 3>& grid) {
  const auto patches = checked_mul(grid[1], grid[2]);
  const std::int64_t patch_bytes = geometry.patch_dim() * geometry.frames_apart();
  const auto bytes = patches ? checked_mul(*patches, patch_bytes) : std::nullopt;
  return bytes && *bytes <= std::numeric_limits<std::int32_t>::max() &&
         checked_mul(grid[0], *bytes);
}

/// Bytes of resized frames. @throws Error(kInvalidArgument) for more than an item can have, of
/// which a temporal patch must be addressable as above.
std::int64_t checked_pixel_bytes(const GridGeometry& geometry, std::int64_t num_frames,
                                 Size2d resized) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  const auto pixels = checked_mul(resized.height_px, resized.width_px);
  const auto frame = pixels ? checked_mul(*pixels, 3) : std::nullopt;
  const auto bytes = frame ? checked_mul(num_frames, *frame) : std::nullopt;
  const std::int64_t together = std::min(geometry.temporal_patch_size, num_frames);
  FOVEA_CHECK(bytes && *frame <= kMost / together, kInvalidArgument, num_frames,
              num_frames == 1 ? " frame" : " frames", " resized to ", resized.width_px, "x",
              resized.height_px, ": more pixels than one item can have");
  return *bytes;
}

/// Pixel values of patches in the order of their frame as those of patches in the order of tokens.
std::vector<std::byte> token_by_token(const GridGeometry& geometry, const ItemPlan& plan,
                                      const ConstTensorView& values) {
  const auto rows = static_cast<std::size_t>(plan.spec.input_rows);
  std::vector<std::int32_t> positions(4 * rows);
  std::vector<std::int32_t> sources(4 * rows);
  write_patch_rows(geometry, plan, 0, plan.pixel_bytes, positions, sources);
  const std::size_t row_bytes = values.bytes() / rows;
  std::vector<std::byte> ordered(values.bytes());
  for (std::size_t r = 0; r < rows; ++r) {
    const auto frame = static_cast<std::int64_t>(r) / (plan.grid[1] * plan.grid[2]);
    const std::int64_t y = frame * plan.grid[1] + positions[4 * r];
    const std::int64_t from = y * plan.grid[2] + positions[4 * r + 1];
    std::copy_n(values.data + static_cast<std::size_t>(from) * row_bytes, row_bytes,
                ordered.data() + r * row_bytes);
  }
  return ordered;
}

/// Frames of each of the units of an item that have patches of their own; 1 where all are joined.
std::int64_t frames_of_unit(const GridGeometry& geometry, Modality modality, std::int64_t units,
                            std::int64_t num_frames) {
  const std::int64_t apart = geometry.frames_apart();
  const bool repeats = geometry.frames == FrameUse::kApart && modality == Modality::kVideo;
  return units > 1 || repeats ? apart : std::min(apart, num_frames);
}

/// @throws Error(kInvalidArgument) for frames of a video that are no whole units.
void check_grid_frames(const GridGeometry& geometry, std::int64_t frames) {
  const std::int64_t apart = geometry.frames_apart();
  const bool may_be_short = geometry.frames == FrameUse::kTogether;
  FOVEA_CHECK(frames % apart == 0 || (may_be_short && frames < apart), kInvalidArgument,
              "grid_thw of a video begins with a multiple of ", apart,
              may_be_short ? ", or less" : "", ", got ", frames);
}

}  // namespace

void check_grid_sides(std::int64_t height, std::int64_t width, std::int64_t most) {
  FOVEA_CHECK(height <= most && width <= most, kInvalidArgument,
              "the model takes grids of less than ", most + 1, " patches a side, got ", width, "x",
              height);
}

void count_views(const GridGeometry& geometry, std::span<const ItemPlan> views, ItemPlan& plan) {
  std::size_t unit_bytes = 0;
  std::int64_t patches = 0;  // of a unit
  for (const ItemPlan& view : views) {
    unit_bytes += view.pixel_bytes;
    patches += view.spec.input_rows;
  }
  const auto bytes = checked_mul(plan.num_frames, static_cast<std::int64_t>(unit_bytes));
  FOVEA_CHECK(bytes.has_value(), kInvalidArgument, plan.num_frames,
              " frames: more pixels than one item can have");
  plan.pixel_bytes = static_cast<std::size_t>(*bytes);
  plan.spec.input_rows = plan.num_frames * patches;
  set_units(plan.num_frames, plan.num_frames * (patches / geometry.merge_area()), plan);
}

ItemPlan GridProcessor::make_plan(Modality modality, std::int64_t num_frames,
                                  std::int64_t source_width_px, std::int64_t source_height_px,
                                  Size2d resized) const {
  const GridGeometry& g = p_.geometry;
  const std::int64_t pixel_bytes = checked_pixel_bytes(g, num_frames, resized);
  ItemPlan plan;
  plan.modality = modality;
  plan.source_width_px = source_width_px;
  plan.source_height_px = source_height_px;
  plan.num_frames = num_frames;
  plan.resized_width_px = resized.width_px;
  plan.resized_height_px = resized.height_px;
  plan.target_width_px = resized.width_px;
  plan.target_height_px = resized.height_px;
  const std::int64_t t = (num_frames + g.temporal_patch_size - 1) / g.temporal_patch_size;
  plan.grid = {t * frames_of_unit(g, modality, t, num_frames), resized.height_px / g.patch_size,
               resized.width_px / g.patch_size};
  plan.has_grid_thw = p_.has_grid_thw;
  plan.pixel_bytes = static_cast<std::size_t>(pixel_bytes);
  plan.unit_bytes[0] = static_cast<std::size_t>(std::min(g.temporal_patch_size, num_frames) *
                                                (pixel_bytes / num_frames));
  plan.spec.input_rows = plan.grid[0] * plan.grid[1] * plan.grid[2];
  plan.spec.out_rows = t * (plan.grid[1] * plan.grid[2] / g.merge_area());
  plan.spec.num_seqs = plan.grid[0];
  plan.spec.path_tokens[0] = plan.spec.out_rows;
  plan.spec.units[0] = {t, plan.spec.input_rows / t, plan.spec.out_rows / t};
  return plan;
}

ItemPlan GridProcessor::plan_image(std::int64_t width_px, std::int64_t height_px) const {
  return make_plan(Modality::kImage, 1, width_px, height_px, p_.image_size(height_px, width_px));
}

ItemPlan GridProcessor::plan_video(std::int64_t num_frames, std::int64_t width_px,
                                   std::int64_t height_px) const {
  if (!p_.video_size) return ItemProcessor::plan_video(num_frames, width_px, height_px);
  FOVEA_CHECK(p_.video_refusal.empty(), kUnsupported, p_.video_refusal);
  return make_plan(Modality::kVideo, num_frames, width_px, height_px,
                   p_.video_size(num_frames, height_px, width_px));
}

ItemPlan GridProcessor::plan_grid(Modality modality,
                                  const std::array<std::int64_t, 3>& grid) const {
  if (!p_.has_grid_thw) return ItemProcessor::plan_grid(modality, grid);
  const auto& [t, h, w] = grid;
  const GridGeometry& g = p_.geometry;
  const std::int64_t merge = g.spatial_merge_size;
  FOVEA_CHECK(t >= 1 && h >= 1 && w >= 1 && h % merge == 0 && w % merge == 0, kInvalidArgument,
              "grid_thw must be positive with sides that are multiples of ", merge, ", got ", t,
              "x", h, "x", w);
  FOVEA_CHECK(modality == Modality::kImage || p_.video_refusal.empty(), kUnsupported,
              p_.video_refusal);
  FOVEA_CHECK(modality == Modality::kVideo || t == 1, kInvalidArgument,
              "grid_thw of an image begins with 1, got ", t, "x", h, "x", w);
  FOVEA_CHECK(is_addressable(g, grid), kInvalidArgument, "grid_thw ", t, "x", h, "x", w,
              " has more pixels than one item can have");
  check_grid_sides(h, w, p_.most_grid_side);
  if (modality == Modality::kVideo) check_grid_frames(g, t);
  const std::int64_t frames = modality == Modality::kImage ? 1 : t * g.patch_frames();
  ItemPlan plan = make_plan(modality, frames, 0, 0,
                            {.height_px = h * g.patch_size, .width_px = w * g.patch_size});
  plan.layout = PixelLayout::kPatches;
  return plan;
}

ItemPlan GridProcessor::plan_patches(Modality modality, const std::array<std::int64_t, 3>& grid,
                                     std::int64_t patch_dim) const {
  ItemPlan plan = plan_grid(modality, grid);
  const GridGeometry& g = p_.geometry;
  FOVEA_CHECK(!p_.row_major_values, kUnsupported,
              "the processor of this model returns patches line by line; on the device they are "
              "taken token by token");
  FOVEA_CHECK(patch_dim == g.patch_dim(), kInvalidArgument, "a patch of this model has ",
              g.patch_dim(), " values, got ", patch_dim);
  // A plan of a still image has one frame of each patch.
  const auto kept_frames = static_cast<std::size_t>(std::min(plan.num_frames, g.patch_frames()));
  const auto frames = static_cast<std::size_t>(g.patch_frames());
  plan.pixel_bytes = plan.pixel_bytes / kept_frames * frames;
  plan.unit_bytes[0] = plan.unit_bytes[0] / kept_frames * frames;
  return plan;
}

std::vector<std::int64_t> GridProcessor::sample_frames(std::int64_t total_frames, double video_fps,
                                                       double target_fps) const {
  if (!p_.sample_frames) return ItemProcessor::sample_frames(total_frames, video_fps, target_fps);
  FOVEA_CHECK(total_frames >= 1 && target_fps > 0, kInvalidArgument, "cannot sample ", total_frames,
              " frames at ", target_fps, " frames per second");
  return p_.sample_frames(total_frames, video_fps, target_fps);
}

std::vector<double> GridProcessor::timestamps(std::span<const double> frame_seconds) const {
  const auto patch_frames = static_cast<std::size_t>(p_.geometry.temporal_patch_size);
  std::vector<double> seconds;
  for (std::size_t i = 0; i < frame_seconds.size(); i += patch_frames) {
    const double first = frame_seconds[i];
    const double last = frame_seconds[std::min(i + patch_frames, frame_seconds.size()) - 1];
    seconds.push_back(p_.timestamp ? p_.timestamp(first, last) : first);
  }
  return seconds;
}

void GridProcessor::fill_frame(const ItemPlan& plan, std::int64_t index, const RgbView& frame,
                               std::span<std::uint8_t> out) const {
  check_frame(plan, index, frame, out);
  const std::size_t frame_bytes = out.size() / static_cast<std::size_t>(plan.num_frames);
  const auto canvas = out.subspan(static_cast<std::size_t>(index) * frame_bytes, frame_bytes);
  if (!p_.content_size) {
    return resize(frame, plan.resized_width_px, plan.resized_height_px, p_.engine, p_.filter,
                  canvas);
  }
  const Size2d content = p_.content_size(plan);
  const media::Image image =
      resized(frame, content.width_px, content.height_px, p_.engine, p_.filter);
  std::ranges::fill(canvas, std::uint8_t{0});
  paste(view_of(image), 0, 0, plan.resized_width_px, canvas);
}

void GridProcessor::fill_pixel_values(const ItemPlan& plan, const ConstTensorView& values,
                                      std::span<std::uint8_t> out) const {
  if (!p_.has_grid_thw) return ItemProcessor::fill_pixel_values(plan, values, out);
  std::vector<std::byte> ordered;
  ConstTensorView rows = values;
  if (p_.row_major_values && values.shape == Shape{plan.spec.input_rows, p_.geometry.patch_dim()}) {
    ordered = token_by_token(p_.geometry, plan, values);
    rows.data = ordered.data();
  }
  common::fill_pixel_values(p_.geometry, p_.scaling, plan, rows, out);
}

}  // namespace fovea::common
