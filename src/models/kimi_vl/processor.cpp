// Host side: images keep their size below a number of patches, and are padded.
#include "models/kimi_vl/processor.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "models/common/config_reader.h"
#include "models/common/frames.h"
#include "models/common/processor_file.h"
#include "models/kimi_vl/config.h"

namespace fovea::kimi_vl {

namespace {

using common::GridGeometry;
using common::Size2d;

/// Size of an image before padding: its own, or that of `limit` patches.
Size2d content_size(std::int64_t height_px, std::int64_t width_px, std::int64_t patch_size,
                    std::int64_t limit) {
  const std::int64_t patches = (width_px / patch_size) * (height_px / patch_size);
  if (patches <= limit) return {height_px, width_px};
  const double scale = std::sqrt(static_cast<double>(limit) / static_cast<double>(patches));
  const auto scaled = [&](std::int64_t side) {
    return static_cast<std::int64_t>(static_cast<double>(side) * scale);
  };
  const Size2d content{scaled(height_px), scaled(width_px)};
  FOVEA_CHECK(content.height_px >= 1 && content.width_px >= 1, kInvalidArgument, "image of ",
              width_px, "x", height_px, " pixels is too thin: with ", limit,
              " patches it would be ", content.width_px, "x", content.height_px);
  return content;
}

void check_grid(std::int64_t height, std::int64_t width, std::int64_t most_side) {
  FOVEA_CHECK(height <= most_side && width <= most_side, kInvalidArgument,
              "the model takes grids of less than ", most_side + 1, " patches a side, got ", width,
              "x", height);
}

void check_file(const JsonView& file, const GridGeometry& geometry) {
  check_same(file, "patch_size", geometry.patch_size);
  check_same(file, "merge_kernel_size", geometry.spatial_merge_size);
  const bool pads = file.bool_or("pad_input", false);  // the default of the reference's class
  FOVEA_CHECK(pads, kUnsupported, file.path(), ".pad_input: false",
              file.find("pad_input") ? "" : ", which is the default,",
              " is not supported, images are padded");
}

}  // namespace

void check_same(const JsonView& file, std::string_view key, std::int64_t expected) {
  const std::int64_t got = common::read_size(file, key, expected);
  FOVEA_CHECK(got == expected, kCorruptData, file.path(), ".", key, ": ", got,
              " contradicts config.json, which says ", expected);
}

ContentSize canvas_of(const GridGeometry& geometry, ContentSize content,
                      std::int64_t most_grid_side) {
  return [=](std::int64_t height_px, std::int64_t width_px) {
    common::check_area(width_px, height_px);
    const Size2d inner = content(height_px, width_px);
    const std::int64_t factor = geometry.resize_factor();
    const auto padded = [&](std::int64_t side) { return (side + factor - 1) / factor * factor; };
    const Size2d canvas{padded(inner.height_px), padded(inner.width_px)};
    check_grid(canvas.height_px / geometry.patch_size, canvas.width_px / geometry.patch_size,
               most_grid_side);
    return canvas;
  };
}

Processing read_processing(const checkpoint::HfConfig& files, const GridGeometry& geometry,
                           const MediaOptions& media) {
  Processing p{.grid = {.geometry = geometry,
                        .scaling = common::kClipScaling,
                        .engine = common::resize_engine(media, media::ResizeEngine::kPillow),
                        .row_major_values = true},
               .image_content = {}};
  std::int64_t in_token_limit = 4096;  // patches above which an image is shrunk
  common::PixelScaling& scaling = p.grid.scaling;
  const auto file = files.image_processor();
  if (file) {
    check_file(*file, geometry);
    in_token_limit = common::read_size(*file, "in_token_limit", in_token_limit);
    scaling.image_mean = common::read_channels(*file, "image_mean", scaling.image_mean);
    scaling.image_std = common::read_positive_channels(*file, "image_std", scaling.image_std);
  }
  p.grid.assumptions = common::missing_text(
      file ? file->path() : files.directory + "/preprocessor_config.json", file.has_value(),
      {common::assumed(file, "in_token_limit", cat(in_token_limit)),
       common::assumed(file, "image_mean", common::channel_text(scaling.image_mean)),
       common::assumed(file, "image_std", common::channel_text(scaling.image_std))});
  p.grid.sources = common::sources_text(
      "image", file, common::sourced(file, {"in_token_limit", "image_mean", "image_std"}));
  p.grid.limits.image = {1, in_token_limit * geometry.patch_size * geometry.patch_size};
  p.image_content = [=](std::int64_t height_px, std::int64_t width_px) {
    return content_size(height_px, width_px, geometry.patch_size, in_token_limit);
  };
  p.grid.image_size = canvas_of(geometry, p.image_content, p.most_grid_side);
  return p;
}

ItemPlan Processor::plan_grid(Modality modality, const std::array<std::int64_t, 3>& grid) const {
  const ItemPlan plan = GridProcessor::plan_grid(modality, grid);
  check_grid(grid[1], grid[2], most_grid_side_);
  return plan;
}

void Processor::fill_frame(const ItemPlan& plan, std::int64_t index, const RgbView& frame,
                           std::span<std::uint8_t> out) const {
  common::check_frame(plan, index, frame, out);
  const ContentSize& content_of =
      plan.modality == Modality::kImage ? image_content_ : video_content_;
  const Size2d content = content_of(plan.source_height_px, plan.source_width_px);
  const media::Image image =
      common::resized(frame, content.width_px, content.height_px, processing().engine);
  const std::size_t frame_bytes = out.size() / static_cast<std::size_t>(plan.num_frames);
  const std::span<std::uint8_t> canvas =
      out.subspan(static_cast<std::size_t>(index) * frame_bytes, frame_bytes);
  std::ranges::fill(canvas, std::uint8_t{0});
  common::paste(common::view_of(image), 0, 0, plan.resized_width_px, canvas);
}

}  // namespace fovea::kimi_vl
