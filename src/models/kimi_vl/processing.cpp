// Host side of Kimi-VL: images keep their size below a number of patches, and are padded.
#include "models/kimi_vl/model.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "models/common/config_reader.h"
#include "models/common/grid/padded.h"
#include "models/common/processor_file.h"

namespace fovea::kimi_vl {

namespace {

using common::GridGeometry;
using common::Size2d;

/// Grids with more patches a side are beyond the reference's table of angles.
constexpr std::int64_t kMostGridSide = 511;

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

void check_file(const JsonView& file, const GridGeometry& geometry) {
  common::check_tower_size(file, "patch_size", geometry.patch_size);
  common::check_tower_size(file, "merge_kernel_size", geometry.spatial_merge_size);
  const bool pads = file.bool_or("pad_input", false);  // the default of the reference's class
  FOVEA_CHECK(pads, kUnsupported, file.path(), ".pad_input: false",
              file.find("pad_input") ? "" : ", which is the default,",
              " is not supported, images are padded");
}

}  // namespace

common::GridProcessing read_processing(const checkpoint::HfConfig& files,
                                       const GridGeometry& geometry, const MediaOptions& media) {
  common::GridProcessing p{.geometry = geometry,
                           .scaling = common::kClipScaling,
                           .engine = common::resize_engine(media, media::ResizeEngine::kPillow),
                           .row_major_values = true,
                           .most_grid_side = kMostGridSide};
  std::int64_t in_token_limit = 4096;  // patches above which an image is shrunk
  common::PixelScaling& scaling = p.scaling;
  const auto file = files.image_processor();
  if (file) {
    check_file(*file, geometry);
    in_token_limit = common::read_size(*file, "in_token_limit", in_token_limit);
    scaling.image_mean = common::read_channels(*file, "image_mean", scaling.image_mean);
    scaling.image_std = common::read_positive_channels(*file, "image_std", scaling.image_std);
  }
  p.assumptions = common::missing_text(
      files, {common::assumed(file, "in_token_limit", cat(in_token_limit)),
              common::assumed(file, "image_mean", common::channel_text(scaling.image_mean)),
              common::assumed(file, "image_std", common::channel_text(scaling.image_std))});
  p.sources = common::sources_text(
      "image", file, common::sourced(file, {"in_token_limit", "image_mean", "image_std"}));
  p.limits.image = {1, in_token_limit * geometry.patch_size * geometry.patch_size};
  common::pad_to_tokens(p, [=](std::int64_t height_px, std::int64_t width_px) {
    return content_size(height_px, width_px, geometry.patch_size, in_token_limit);
  });
  return p;
}

}  // namespace fovea::kimi_vl
