// From images and frames to square views.
#include "models/internvl/processor.h"

#include <array>

#include "core/check.h"
#include "models/common/config_reader.h"
#include "models/common/frames.h"
#include "models/common/processor_file.h"
#include "models/common/views/tiles.h"

namespace fovea::internvl {

namespace {

constexpr std::int64_t kMaxTiles = 1024;  // far above the 40 that anybody has used
constexpr const char* kLeastTiles = "min_dynamic_patch";
constexpr const char* kMostTiles = "max_dynamic_patch";
constexpr std::int64_t kMaxFrames = 32;  // of a video, vLLM's default
constexpr std::array<float, 3> kImageNetMean{0.485f, 0.456f, 0.406f};
constexpr std::array<float, 3> kImageNetStd{0.229f, 0.224f, 0.225f};

void read_tiles(const JsonView& file, const char* least, const char* most, Processing& p) {
  p.min_tiles = common::read_size(file, least, p.min_tiles, kMaxTiles);
  p.max_tiles = common::read_size(file, most, p.max_tiles, kMaxTiles);
  FOVEA_CHECK(p.min_tiles <= p.max_tiles, kCorruptData, file.path(), ": expected ", least,
              " <= ", most, ", got ", p.min_tiles, " and ", p.max_tiles);
}

/// The authors' format: config.json has numbers of tiles, the rest is fixed in their code.
Processing read_chat(const checkpoint::HfConfig& files, const common::SquareView& view,
                     const MediaOptions& media) {
  const JsonView root = files.config.root();
  Processing p{
      .views = {.view = view, .engine = common::resize_engine(media, media::ResizeEngine::kPillow)},
      .max_tiles = 6,
      .use_thumbnail = root.bool_or("use_thumbnail", false),
      .normalize = media::to_tensor_normalize_table(kImageNetMean, kImageNetStd)};
  read_tiles(root, kLeastTiles, kMostTiles, p);
  if (!root.bool_or("dynamic_image_size", false)) p.min_tiles = p.max_tiles = 1;
  if (files.item) read_tiles(files.item->given.root(), kLeastTiles, kMostTiles, p);
  p.views.sources = common::sources_text(
      "image", root,
      common::sourced(root, {"dynamic_image_size", kLeastTiles, kMostTiles, "use_thumbnail"}));
  return p;
}

}  // namespace

Processing read_processing(const checkpoint::HfConfig& files, const Config& c,
                           const MediaOptions& media) {
  if (c.format != Format::kNative) return read_chat(files, c.view, media);
  // The processor of transformers cuts images whatever crop_to_patches says. Its classes have the
  // scaling of CLIP where a file is silent; without a file, which they do not load, that of the
  // released checkpoints is assumed. Source: transformers 5.24,
  // got_ocr2/image_processing_got_ocr2.py, internvl/video_processing_internvl.py.
  constexpr common::PixelScaling kReleased{.image_mean = kImageNetMean, .image_std = kImageNetStd};
  Processing p{.views = common::read_view_processing(
                   files, c.view, media,
                   {.scaling = common::kClipScaling, .without_file = kReleased},
                   {"min_patches", "max_patches"})};
  if (const auto file = files.image_processor()) {
    read_tiles(*file, "min_patches", "max_patches", p);
  }
  common::read_video_views(files, p.views);
  p.normalize = p.views.scaling.table();
  return p;
}

ItemPlan Processor::plan_image(std::int64_t width_px, std::int64_t height_px) const {
  common::check_area(width_px, height_px);
  const common::SquareView& view = processing().view;
  const common::Tiling tiling =
      common::nearest_tiling(width_px, height_px, view.side_px, p_.min_tiles, p_.max_tiles);
  const bool thumbnail = p_.use_thumbnail && tiling.count() > 1;
  return common::plan_tiles(width_px, height_px, tiling,
                            {view, tiling.count() + (thumbnail ? 1 : 0)});
}

ItemPlan Processor::plan_video(std::int64_t num_frames, std::int64_t width_px,
                               std::int64_t height_px) const {
  return plan_frames(num_frames, width_px, height_px);
}

std::vector<std::int64_t> Processor::sample_frames(std::int64_t total_frames, double video_fps,
                                                   double target_fps) const {
  return common::sample_evenly(total_frames, video_fps, target_fps, kMaxFrames);
}

}  // namespace fovea::internvl
