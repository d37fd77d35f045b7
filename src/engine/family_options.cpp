// Options that a family without the part of the processor that they set cannot honour.
#include "engine/family_options.h"

#include <string>

#include "core/check.h"
#include "engine/pruning/video_pruning.h"
#include "models/registry.h"

namespace fovea {
namespace {

void check_pixel_range(std::string_view architecture, const MediaOptions& media) {
  if (!media.min_pixels && !media.max_pixels) return;
  const ModelFamily& family = find_family(architecture);
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

void check_family_options(std::string_view architecture, const EngineOptions& options) {
  check_video_pruning(architecture, pruning_of(options));
  check_pixel_range(architecture, options.media);
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
