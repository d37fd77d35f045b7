// Host side of SigLIP 2 NaFlex: images keep their ratio in whole patches.
#include "models/siglip2/processor.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/check.h"
#include "models/common/config_reader.h"
#include "models/common/frames.h"
#include "models/common/processor_file.h"

namespace fovea::siglip2 {

namespace {

using common::Size2d;

constexpr std::int64_t kMaxNumPatches = std::int64_t{1} << 16;

media::ResizeFilter read_filter(const JsonView& file) {
  const double number = file.find("resample") ? file.at("resample").as_number() : 2;
  FOVEA_CHECK(number == 2 || number == 3, kUnsupported, file.path(),
              ".resample: expected 2 (bilinear) or 3 (bicubic), got ", number);
  return number == 2 ? media::ResizeFilter::kBilinear : media::ResizeFilter::kBicubic;
}

void check_class(const JsonView& file) {
  const auto type = file.find("image_processor_type");
  FOVEA_CHECK(!type || type->as_string().starts_with("Siglip2ImageProcessor"), kUnsupported,
              file.path(), ".image_processor_type: expected Siglip2ImageProcessor, got ",
              type->as_string());
}

}  // namespace

common::GridProcessing read_processing(const checkpoint::HfConfig& files,
                                       const common::GridGeometry& geometry,
                                       const MediaOptions& media) {
  common::GridProcessing p{
      .geometry = geometry,
      .engine = common::resize_engine(media, media::ResizeEngine::kTorchvision),
      .filter = media::ResizeFilter::kBilinear};
  std::int64_t max_num_patches = 256;
  const auto file = files.image_processor();
  if (file) {
    check_class(*file);
    p.scaling = common::read_scaling(*file, p.scaling);
    p.filter = read_filter(*file);
    max_num_patches = common::read_size(*file, "max_num_patches", max_num_patches, kMaxNumPatches);
    const std::int64_t patch = common::read_size(*file, "patch_size", geometry.patch_size);
    FOVEA_CHECK(patch == geometry.patch_size, kCorruptData, file->path(), ".patch_size: ", patch,
                " contradicts config.json, which says ", geometry.patch_size);
  }
  const std::int64_t area = geometry.patch_size * geometry.patch_size;
  p.limits.image = {area, max_num_patches * area};
  p.image_size = [patch = geometry.patch_size, max_num_patches](std::int64_t height_px,
                                                                std::int64_t width_px) {
    common::check_area(width_px, height_px);
    return naflex_size(height_px, width_px, patch, max_num_patches);
  };
  p.assumptions = common::missing_text(
      files, {common::assumed(file, "max_num_patches", cat(max_num_patches)),
              common::assumed(file, "image_mean", common::channel_text(p.scaling.image_mean)),
              common::assumed(file, "image_std", common::channel_text(p.scaling.image_std))});
  p.sources =
      common::sources_text("image", file,
                           common::sourced(file, {"max_num_patches", "patch_size", "resample",
                                                  "image_mean", "image_std", "rescale_factor"}));
  return p;
}

Size2d naflex_size(std::int64_t height_px, std::int64_t width_px, std::int64_t patch_size,
                   std::int64_t max_num_patches) {
  constexpr double kEpsilon = 1e-5;
  const auto patch = static_cast<double>(patch_size);
  const auto patches_of = [&](std::int64_t side, double scale) {
    return std::max(1.0, std::ceil(static_cast<double>(side) * scale / patch));
  };
  double least = kEpsilon / 10;
  double most = 100;
  while (most - least >= kEpsilon) {
    const double scale = (least + most) / 2;
    const double patches = patches_of(height_px, scale) * patches_of(width_px, scale);
    (patches <= static_cast<double>(max_num_patches) ? least : most) = scale;
  }
  const auto scaled = [&](std::int64_t side) {
    return static_cast<std::int64_t>(patches_of(side, least)) * patch_size;
  };
  return {.height_px = scaled(height_px), .width_px = scaled(width_px)};
}

ItemPlan Processor::plan_image(std::int64_t width_px, std::int64_t height_px) const {
  ItemPlan plan = GridProcessor::plan_image(width_px, height_px);
  plan.has_grid_thw = false;
  if (vectors_) plan.spec.out_rows = 1;
  return plan;
}

ItemPlan Processor::plan_grid(Modality modality, const std::array<std::int64_t, 3>& grid) const {
  return ItemProcessor::plan_grid(modality, grid);
}

void Processor::fill_pixel_values(const ItemPlan& plan, const ConstTensorView& values,
                                  std::span<std::uint8_t> out) const {
  ItemProcessor::fill_pixel_values(plan, values, out);
}

}  // namespace fovea::siglip2
