// Host side of Kimi-K2.5: the processor files of the vendor and of transformers, sizes, sampling.
#include <algorithm>
#include <cmath>
#include <optional>

#include "core/check.h"
#include "models/common/config_reader.h"
#include "models/common/frames.h"
#include "models/common/grid/padded.h"
#include "models/common/grid/processor_file.h"
#include "models/common/processor_file.h"
#include "models/kimi_k25/model.h"

namespace fovea::kimi_k25 {

namespace {

using common::GridGeometry;
using common::PixelScaling;
using common::Size2d;

/// Patches above which images or frames are shrunk, all together and on a side.
struct Limits {
  std::int64_t patches = 0;
  std::int64_t side = 512;
};

/// Sides of an image of at most `limits` patches. Divisions are done in double, as the reference
/// does; a side below one patch counts as one.
Size2d content_within(const Limits& limits, std::int64_t patch_size, std::int64_t height_px,
                      std::int64_t width_px) {
  const auto as_double = [](std::int64_t value) { return static_cast<double>(value); };
  const std::int64_t most_px = limits.side * patch_size;
  const auto patches = [&](std::int64_t side) {
    return as_double(std::max<std::int64_t>(1, side / patch_size));
  };
  const double scale = std::min(
      {1.0, std::sqrt(as_double(limits.patches) / (patches(height_px) * patches(width_px))),
       as_double(most_px) / as_double(height_px), as_double(most_px) / as_double(width_px)});
  const auto scaled = [&](std::int64_t side) {
    const auto shrunk = static_cast<std::int64_t>(as_double(side) * scale);
    return std::clamp<std::int64_t>(shrunk, 1, most_px);
  };
  return {scaled(height_px), scaled(width_px)};
}

/// As the vendor's code: at even distances from the first frame to the last, rounded half to even.
std::vector<std::int64_t> sample_rounded(std::int64_t total, double fps, double target_fps) {
  const double wanted = static_cast<double>(total) * std::min(target_fps, fps) / fps;
  const auto count = std::max<std::int64_t>(1, static_cast<std::int64_t>(std::nearbyint(wanted)));
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < count; ++i) {
    const double place = common::spaced(0, static_cast<double>(total - 1), count, i);
    indices.push_back(static_cast<std::int64_t>(std::nearbyint(place)));
  }
  return indices;
}

/// As transformers: the first frame of each of `count` equal parts.
std::vector<std::int64_t> sample_parts(std::int64_t total, double fps, double target_fps) {
  const double wanted = std::min(static_cast<double>(total) / fps * target_fps,
                                 static_cast<double>(total));  // which the reference refuses
  const auto count = std::max<std::int64_t>(1, static_cast<std::int64_t>(wanted));
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < count; ++i) indices.push_back(i * total / count);
  return indices;
}

/// The values of the files, in either of their forms.
struct Files {
  Limits image{.patches = 16384};
  Limits video{.patches = 4096};
  PixelScaling scaling;
  bool is_vendors = false;
  std::string video_refusal = {};
};

/// Published files: media_proc_cfg of preprocessor_config.json.
Files read_vendors(const JsonView& file, const GridGeometry& geometry) {
  common::check_tower_size(file, "patch_size", geometry.patch_size);
  common::check_tower_size(file, "merge_kernel_size", geometry.spatial_merge_size);
  FOVEA_CHECK(!file.find("fixed_output_tokens"), kUnsupported, file.path(),
              ".fixed_output_tokens: only null is supported");
  Files f{.is_vendors = true};
  f.image.patches = common::read_size(file, "in_patch_limit", f.image.patches);
  f.image.side = common::read_size(file, "patch_limit_on_one_side", f.image.side);
  f.video = {.patches = common::read_size(file, "in_patch_limit_each_frame", f.image.patches),
             .side = f.image.side};
  if (file.find("in_patch_limit_video")) {
    f.video_refusal = cat(file.path(), ".in_patch_limit_video: videos are only supported if it is ",
                          "null, frames of one video would have several sizes");
  }
  f.scaling.image_mean = common::read_channels(file, "image_mean", f.scaling.image_mean);
  f.scaling.image_std = common::read_positive_channels(file, "image_std", f.scaling.image_std);
  return f;
}

/// One file of transformers.
Limits read_limits(const JsonView& file, const GridGeometry& geometry, Limits limits) {
  common::check_tower_size(file, "patch_size", geometry.patch_size);
  common::check_tower_size(file, "merge_size", geometry.spatial_merge_size);
  common::require_number(file, "resample", 3);
  limits.patches = common::read_size(file, "max_patches", limits.patches);
  const auto size = file.find("size");
  if (!size) return limits;
  limits.side = common::as_size(size->at("max_height"));
  const std::int64_t width = common::as_size(size->at("max_width"));
  FOVEA_CHECK(limits.side == width, kUnsupported, size->path(),
              ": expected max_height and max_width to be equal, got ", limits.side, " and ", width);
  return limits;
}

Files read_transformers(const std::optional<JsonView>& image, const std::optional<JsonView>& video,
                        const GridGeometry& geometry) {
  Files f;
  if (image) {
    f.image = read_limits(*image, geometry, f.image);
    f.scaling = common::read_scaling(*image, f.scaling);
  }
  if (video) {
    f.video = read_limits(*video, geometry, f.video);
    const PixelScaling scaling = common::read_scaling(*video, PixelScaling{});
    f.video_refusal = common::video_refusal(*video, common::differing_keys(scaling, f.scaling));
  }
  return f;
}

/// Assumptions and sources, for the log.
void describe(const checkpoint::HfConfig& files, const Files& f, common::GridProcessing& p) {
  auto image = files.image_processor();
  if (f.is_vendors) image = image->at("media_proc_cfg");
  const char* const limit = f.is_vendors ? "in_patch_limit" : "max_patches";
  p.assumptions = common::missing_text(
      files, {common::assumed(image, limit, cat(f.image.patches)),
              common::assumed(image, "image_mean", common::channel_text(f.scaling.image_mean)),
              common::assumed(image, "image_std", common::channel_text(f.scaling.image_std))});
  p.sources = common::sources_text("image", image,
                                   common::sourced(image, {limit, "image_mean", "image_std"}));
  const auto video = f.is_vendors ? image : files.video_processor();
  const char* const of_frame = f.is_vendors ? "in_patch_limit_each_frame" : limit;
  p.sources += " " + common::sources_text("video", video, common::sourced(video, {of_frame}));
}

}  // namespace

common::GridProcessing read_processing(const checkpoint::HfConfig& files,
                                       const GridGeometry& geometry, const MediaOptions& media) {
  const auto image = files.image_processor();
  const auto vendors = image ? image->find("media_proc_cfg") : std::nullopt;
  const Files f = vendors ? read_vendors(*vendors, geometry)
                          : read_transformers(image, files.video_processor(), geometry);
  const std::int64_t patch = geometry.patch_size;
  const std::int64_t merge = geometry.spatial_merge_size;
  const auto content_of = [patch](const Limits& limits) -> common::ContentSize {
    return [=](std::int64_t height_px, std::int64_t width_px) {
      return content_within(limits, patch, height_px, width_px);
    };
  };
  const auto engine =
      vendors || !image ? media::ResizeEngine::kPillow : media::ResizeEngine::kTorchvision;
  const std::int64_t side = std::max(f.image.side, f.video.side);
  common::GridProcessing p{.geometry = geometry,
                           .limits = {.image = {1, f.image.patches * patch * patch},
                                      .video = {1, f.video.patches * patch * patch}},
                           .scaling = f.scaling,
                           .engine = common::resize_engine(media, engine),
                           .row_major_values = true,
                           .most_grid_side = (side + merge - 1) / merge * merge,
                           .video_refusal = f.video_refusal};
  common::pad_to_tokens(p, content_of(f.image), content_of(f.video));
  p.sample_frames = [is_vendors = f.is_vendors](std::int64_t total, double video_fps,
                                                double target_fps) {
    const double fps = video_fps > 0 ? video_fps : common::kUnknownFps;
    return is_vendors ? sample_rounded(total, fps, target_fps)
                      : sample_parts(total, fps, target_fps);
  };
  describe(files, f, p);
  return p;
}

}  // namespace fovea::kimi_k25
