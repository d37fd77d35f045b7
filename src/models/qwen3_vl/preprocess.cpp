// From picture sizes to grids, and from pixels to the rows of the patch embedding. Rows are in
// merge-block order, so that merge_area consecutive rows become one output token.
#include "models/qwen3_vl/preprocess.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "core/check.h"
#include "media/resize.h"

namespace fovea::qwen3_vl {

namespace {

/// Counts that follow from the resized size. @param frames pictures whose bytes are kept.
ItemPlan make_plan(const Config& c, Modality modality, std::int64_t frames,
                   std::int64_t source_width_px, std::int64_t source_height_px,
                   blocks::Size2d resized) {
  ItemPlan plan;
  plan.modality = modality;
  plan.source_width_px = source_width_px;
  plan.source_height_px = source_height_px;
  plan.num_frames = frames;
  plan.resized_width_px = resized.width_px;
  plan.resized_height_px = resized.height_px;
  const std::int64_t t = (frames + c.temporal_patch_size - 1) / c.temporal_patch_size;
  plan.grid = {t, resized.height_px / c.patch_size, resized.width_px / c.patch_size};
  plan.has_grid_thw = true;
  plan.pixel_bytes = static_cast<std::size_t>(frames * resized.height_px * resized.width_px * 3);
  plan.spec.input_rows = plan.grid[0] * plan.grid[1] * plan.grid[2];
  plan.spec.out_rows = plan.spec.input_rows / c.merge_area();
  plan.spec.num_seqs = t;
  plan.spec.path_tokens[0] = plan.spec.out_rows;
  return plan;
}

/// Whether the patch sources, 32-bit offsets, reach all pixels of a grid.
bool is_addressable(const Config& c, const std::array<std::int64_t, 3>& grid) {
  const auto frame = checked_mul(grid[1], grid[2]);
  const auto patches = frame ? checked_mul(grid[0], *frame) : std::nullopt;
  const auto bytes = patches ? checked_mul(*patches, c.patch_dim()) : std::nullopt;
  return bytes && *bytes <= std::numeric_limits<std::int32_t>::max();
}

std::int64_t resize_factor(const Config& c) { return c.patch_size * c.spatial_merge_size; }

}  // namespace

ItemPlan plan_image(const Config& config, const PreprocessConfig& preprocess, std::int64_t width_px,
                    std::int64_t height_px) {
  const blocks::Size2d resized =
      blocks::smart_resize_image(height_px, width_px, resize_factor(config), preprocess.image);
  return make_plan(config, Modality::kImage, 1, width_px, height_px, resized);
}

ItemPlan plan_video(const Config& config, const PreprocessConfig& preprocess,
                    std::int64_t num_frames, std::int64_t width_px, std::int64_t height_px) {
  blocks::PixelRange range = preprocess.video;
  const std::int64_t factor = resize_factor(config);
  if (preprocess.cap_pixels_per_frame && num_frames > 0) {
    const std::int64_t per_frame =
        std::min(preprocess.max_video_tokens * factor * factor, range.max_pixels / num_frames);
    const auto floor = static_cast<std::int64_t>(1.05 * static_cast<double>(range.min_pixels));
    range.max_pixels = num_frames * std::max(per_frame, floor);
  }
  const blocks::Size2d resized = blocks::smart_resize_video(
      num_frames, height_px, width_px, config.temporal_patch_size, factor, range);
  return make_plan(config, Modality::kVideo, num_frames, width_px, height_px, resized);
}

ItemPlan plan_grid(const Config& config, Modality modality,
                   const std::array<std::int64_t, 3>& grid) {
  const auto& [t, h, w] = grid;
  const std::int64_t merge = config.spatial_merge_size;
  FOVEA_CHECK(t >= 1 && h >= 1 && w >= 1 && h % merge == 0 && w % merge == 0, kInvalidArgument,
              "grid_thw must be positive with sides that are multiples of ", merge, ", got ", t,
              "x", h, "x", w);
  FOVEA_CHECK(modality == Modality::kVideo || t == 1, kInvalidArgument,
              "grid_thw of a picture begins with 1, got ", t, "x", h, "x", w);
  FOVEA_CHECK(is_addressable(config, grid), kInvalidArgument, "grid_thw ", t, "x", h, "x", w,
              " has more pixels than one item can have");
  const std::int64_t frames = modality == Modality::kImage ? 1 : t * config.temporal_patch_size;
  ItemPlan plan =
      make_plan(config, modality, frames, 0, 0,
                {.height_px = h * config.patch_size, .width_px = w * config.patch_size});
  plan.layout = PixelLayout::kPatches;
  return plan;
}

std::vector<std::int64_t> sample_frames(const PreprocessConfig& preprocess,
                                        std::int64_t total_frames, double video_fps,
                                        double target_fps) {
  FOVEA_CHECK(total_frames >= 1 && target_fps > 0, kInvalidArgument, "cannot sample ", total_frames,
              " frames at ", target_fps, " frames per second");
  constexpr double kUnknownFps = 24.0;
  constexpr double kAbsurd = 1e9;  // keeps the count an integer for any rate
  const double fps = video_fps > 0 ? video_fps : kUnknownFps;
  const double wanted = std::min(static_cast<double>(total_frames) / fps * target_fps, kAbsurd);
  std::int64_t count = std::max(static_cast<std::int64_t>(wanted), preprocess.min_frames);
  count = std::min({count, preprocess.max_frames, total_frames});
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < count; ++i) {
    // linspace(0, total - 1, count)[i]
    const double step =
        count == 1 ? 0.0 : static_cast<double>(total_frames - 1) / static_cast<double>(count - 1);
    indices.push_back(static_cast<std::int64_t>(std::nearbyint(static_cast<double>(i) * step)));
  }
  return indices;
}

void fill_pixels(const PreprocessConfig& preprocess, const ItemPlan& plan,
                 std::span<const RgbView> frames, std::span<std::uint8_t> out) {
  FOVEA_CHECK(static_cast<std::int64_t>(frames.size()) == plan.num_frames, kInvalidArgument,
              "item was planned for ", plan.num_frames, " frames, got ", frames.size());
  FOVEA_CHECK(out.size() == plan.pixel_bytes, kInternal, "pixels need ", plan.pixel_bytes,
              " bytes, got ", out.size());
  const std::size_t frame_bytes = plan.pixel_bytes / frames.size();
  for (std::size_t f = 0; f < frames.size(); ++f) {
    const RgbView& frame = frames[f];
    FOVEA_CHECK(frame.width_px == plan.source_width_px && frame.height_px == plan.source_height_px,
                kInvalidArgument, "frame ", f, " is ", frame.width_px, "x", frame.height_px,
                " pixels, the first one is ", plan.source_width_px, "x", plan.source_height_px);
    media::resize_rgb(
        {.src = {frame.rgb, static_cast<std::size_t>(frame.width_px * frame.height_px * 3)},
         .src_width_px = frame.width_px,
         .src_height_px = frame.height_px,
         .dst = out.subspan(f * frame_bytes, frame_bytes),
         .dst_width_px = plan.resized_width_px,
         .dst_height_px = plan.resized_height_px,
         .engine = preprocess.engine,
         .filter = preprocess.filter});
  }
}

void write_patch_rows(const Config& config, const ItemPlan& plan, std::int64_t pixel_offset,
                      std::span<std::int32_t> positions, std::span<std::int32_t> sources) {
  const std::int64_t t = plan.grid[0];
  const std::int64_t h = plan.grid[1];
  const std::int64_t w = plan.grid[2];
  const std::int64_t m = config.spatial_merge_size;
  const std::int64_t p = config.patch_size;
  const bool tiled = plan.layout == PixelLayout::kPatches;
  const std::int64_t tile_bytes = static_cast<std::int64_t>(plan.pixel_bytes) / (t * h * w);
  const std::int64_t row_stride = (tiled ? p : plan.resized_width_px) * 3;
  const std::int64_t frame_stride = (tiled ? p : plan.resized_height_px) * row_stride;
  auto position = positions.begin();
  auto source = sources.begin();
  std::int64_t tile = pixel_offset;  // of the next patch, where each has its own
  const auto emit = [&](std::int64_t y, std::int64_t x, std::int64_t frame_offset,
                        std::int64_t next_frame) {
    for (const std::int64_t v : {y, x, h, w}) *position++ = static_cast<std::int32_t>(v);
    const std::int64_t offset = tiled ? tile : frame_offset + y * p * row_stride + x * p * 3;
    tile += tile_bytes;
    for (const std::int64_t v : {offset, row_stride, next_frame, std::int64_t{0}}) {
      *source++ = static_cast<std::int32_t>(v);
    }
  };
  for (std::int64_t ti = 0; ti < t; ++ti) {
    const std::int64_t first = ti * config.temporal_patch_size;
    // A still picture, or a last odd frame, is repeated: the next frame is the same one.
    const std::int64_t next_frame = first + 1 < plan.num_frames ? frame_stride : 0;
    const std::int64_t frame_offset = pixel_offset + first * frame_stride;
    for (std::int64_t block_y = 0; block_y < h; block_y += m) {
      for (std::int64_t block_x = 0; block_x < w; block_x += m) {
        for (std::int64_t y = block_y; y < block_y + m; ++y) {
          for (std::int64_t x = block_x; x < block_x + m; ++x) emit(y, x, frame_offset, next_frame);
        }
      }
    }
  }
}

}  // namespace fovea::qwen3_vl
