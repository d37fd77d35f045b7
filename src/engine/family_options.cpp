// Options that a family without the part of the processor that they set cannot honour.
#include "engine/family_options.h"

#include <string>
#include <string_view>

#include "core/check.h"
#include "engine/option_values.h"
#include "engine/pruning/video_pruning.h"

namespace fovea {
namespace {

void check_pixel_range(const ModelFamily& family, std::string_view architecture,
                       const MediaOptions& media) {
  if (!media.min_pixels && !media.max_pixels) return;
  if (family.has_pixel_range) return;
  std::string names;
  for (const ModelFamily* const other : model_families()) {
    if (other->has_pixel_range) names += cat(names.empty() ? "" : ", ", other->name);
  }
  FOVEA_CHECK(false, kUnsupported, media.min_pixels ? "min_pixels" : "max_pixels", ": images of ",
              architecture, " (family ", family.name,
              ") are not resized into a range of pixels, only those of ", names);
}

}  // namespace

void check_family_options(const checkpoint::HfConfig& files, const EngineOptions& options) {
  const ModelFamily family = family_of(files);
  const std::string_view architecture = known_architecture(files);
  check_video_pruning(family, architecture, pruning_of(options));
  check_pixel_range(family, architecture, options.media);
  FOVEA_CHECK(family.library == nullptr || options.quantization == Quantization::kNone,
              kUnsupported, "quantization: the tower ", architecture, " of ", files.tower,
              " is loaded as it is, only Fovea's own towers are quantized");
}

checkpoint::HfConfig read_model_files(const std::string& directory, const EngineOptions& options) {
  check_values(options);
  checkpoint::HfConfig files = checkpoint::read_hf_config(directory);
  files.tower = options.tower;
  return files;
}

TowerOutput tower_output(const EngineOptions& options) {
  FOVEA_CHECK(options.vectors || !options.normalize_vectors, kInvalidArgument,
              "normalize_vectors: expected vectors, too, which it normalises; got rows");
  if (!options.vectors) return TowerOutput::kRows;
  return options.normalize_vectors ? TowerOutput::kUnitVectors : TowerOutput::kVectors;
}

EngineOptions with_patch_limit(EngineOptions options) {
  MediaLimits& limits = options.media.limits;
  const bool are_cut = options.packing == PackingPolicy::kUnits;
  if (!are_cut && limits.max_patches_per_item == 0) {
    limits.max_patches_per_item = limits.max_patches_at_once;
  }
  return options;
}

}  // namespace fovea
