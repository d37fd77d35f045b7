// Host side of the Pixtral tower: images keep their size below a longest side, and are stretched to
// whole tokens.
#include <algorithm>
#include <cmath>
#include <optional>

#include "core/check.h"
#include "models/common/config_reader.h"
#include "models/common/frames.h"
#include "models/common/processor_file.h"
#include "models/mistral3/config.h"

namespace fovea::mistral3 {

namespace {

using common::GridGeometry;
using common::Size2d;

constexpr std::int64_t kClassLongestEdge =
    1024;  // of the reference's class, where a file is silent

std::int64_t rounded_up(std::int64_t side, std::int64_t factor) {
  return (side + factor - 1) / factor * factor;
}

/// Size of an image: its own, or the largest of its shape within `most`, rounded up to tokens.
Size2d resized_size(std::int64_t height_px, std::int64_t width_px, Size2d most,
                    std::int64_t factor) {
  common::check_area(width_px, height_px);
  const auto height = static_cast<double>(height_px);
  const auto width = static_cast<double>(width_px);
  const double ratio = std::max(height / static_cast<double>(most.height_px),
                                width / static_cast<double>(most.width_px));
  Size2d size{height_px, width_px};
  if (ratio > 1) {
    size = {static_cast<std::int64_t>(std::floor(height / ratio)),
            static_cast<std::int64_t>(std::floor(width / ratio))};
  }
  FOVEA_CHECK(size.height_px >= 1 && size.width_px >= 1, kInvalidArgument, "image of ", width_px,
              "x", height_px, " pixels is too thin: within ", most.width_px, "x", most.height_px,
              " it would be ", size.width_px, "x", size.height_px);
  return {rounded_up(size.height_px, factor), rounded_up(size.width_px, factor)};
}

/// The largest sides of an image before they are rounded up.
Size2d read_most(const JsonView& file) {
  const auto size = file.find("size");
  if (!size) return {kClassLongestEdge, kClassLongestEdge};
  if (const auto edge = size->find("longest_edge")) {
    const std::int64_t side = common::as_size(*edge);
    return {side, side};
  }
  return {common::as_size(size->at("height")), common::as_size(size->at("width"))};
}

void check_same(const JsonView& value, std::int64_t got, std::int64_t expected) {
  FOVEA_CHECK(got == expected, kCorruptData, value.path(), ": ", got,
              " contradicts config.json, which says ", expected);
}

/// Requires the sizes of the tower where processor_config.json has them, and in the file of images
/// a patch or a token, to which its class rounds where nothing else is said.
void check_geometry(const checkpoint::HfConfig& files, const JsonView& file,
                    const GridGeometry& geometry) {
  if (files.processor) {
    const JsonView whole = files.processor->root();
    const auto expect = [&](const char* key, std::int64_t expected) {
      if (const auto value = whole.find(key)) check_same(*value, common::as_size(*value), expected);
    };
    expect("patch_size", geometry.patch_size);
    expect("spatial_merge_size", geometry.spatial_merge_size);
  }
  const auto patch = file.find("patch_size");
  if (!patch) return;
  for (const char* key : {"height", "width"}) {
    const std::int64_t side = patch->is_object()
                                  ? common::read_size(*patch, key, geometry.patch_size)
                                  : common::as_size(*patch);
    if (side != geometry.resize_factor()) check_same(*patch, side, geometry.patch_size);
  }
}

}  // namespace

common::GridProcessing read_processing(const checkpoint::HfConfig& files, const Config& config,
                                       const MediaOptions& media) {
  common::GridProcessing p{
      .geometry = config.grid,
      .scaling = common::kClipScaling,
      .engine = common::resize_engine(media, media::ResizeEngine::kTorchvision),
      .row_major_values = true};
  Size2d most{config.image_size, config.image_size};
  const auto file = files.image_processor();
  if (file) {
    check_geometry(files, *file, config.grid);
    most = read_most(*file);
    p.scaling = common::read_scaling(*file, p.scaling);
    common::require_number(*file, "resample", 3);  // bicubic
  }
  p.assumptions = common::missing_text(
      files, {{file && file->find("size"), "size", cat("longest_edge=", most.width_px)},
              common::assumed(file, "image_mean", common::channel_text(p.scaling.image_mean)),
              common::assumed(file, "image_std", common::channel_text(p.scaling.image_std))});
  p.sources = common::sources_text(
      "image", file,
      common::sourced(file, {"size", "image_mean", "image_std", "rescale_factor", "resample"}));
  const std::int64_t factor = config.grid.resize_factor();
  p.limits.image = {1, rounded_up(most.height_px, factor) * rounded_up(most.width_px, factor)};
  p.image_size = [most, factor](std::int64_t height_px, std::int64_t width_px) {
    return resized_size(height_px, width_px, most, factor);
  };
  return p;
}

}  // namespace fovea::mistral3
