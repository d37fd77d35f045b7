// From images and frames to square views.
#include "models/internvl/processor.h"

#include <algorithm>
#include <array>

#include "core/check.h"
#include "models/common/config_reader.h"
#include "models/common/frames.h"
#include "models/common/processor_file.h"
#include "models/common/views/tiles.h"

namespace fovea::internvl {

namespace {

using common::Tiling;

constexpr std::int64_t kMaxTiles = 1024;  // far above the 40 that anybody has used
constexpr std::int64_t kMaxFrames = 32;   // of a video, vLLM's default
constexpr std::array<float, 3> kImageNetMean{0.485f, 0.456f, 0.406f};
constexpr std::array<float, 3> kImageNetStd{0.229f, 0.224f, 0.225f};

void read_tiles(const JsonView& file, const char* least, const char* most, Processing& p) {
  p.min_tiles = common::read_size(file, least, p.min_tiles, kMaxTiles);
  p.max_tiles = common::read_size(file, most, p.max_tiles, kMaxTiles);
  FOVEA_CHECK(p.min_tiles <= p.max_tiles, kCorruptData, file.path(), ": expected ", least,
              " <= ", most, ", got ", p.min_tiles, " and ", p.max_tiles);
}

/// The authors' format: config.json has numbers of tiles, the rest is fixed in their code.
void read_chat(const JsonView& root, Processing& p) {
  p.max_tiles = 6;
  read_tiles(root, "min_dynamic_patch", "max_dynamic_patch", p);
  if (!root.bool_or("dynamic_image_size", false)) p.min_tiles = p.max_tiles = 1;
  p.use_thumbnail = root.bool_or("use_thumbnail", false);
  p.normalize = media::to_tensor_normalize_table(kImageNetMean, kImageNetStd);
  p.sources = common::sources_text("image", root,
                                   common::sourced(root, {"dynamic_image_size", "min_dynamic_patch",
                                                          "max_dynamic_patch", "use_thumbnail"}));
}

std::string native_sources(const checkpoint::HfConfig& files) {
  const auto image = files.image_processor();
  const auto video = files.video_processor();
  return cat(common::sources_text(
                 "image", image,
                 common::sourced(image, {"size", "min_patches", "max_patches", "image_mean",
                                         "image_std", "rescale_factor", "resample"})),
             " ",
             common::sources_text(
                 "video", video,
                 common::sourced(video, {"size", "image_mean", "image_std", "rescale_factor"})));
}

/// The format of transformers, whose processor cuts images whatever crop_to_patches says. Its
/// classes have the scaling of CLIP where a file is silent; without a file, which they do not load,
/// that of the released checkpoints is assumed. Source: transformers 5.24,
/// got_ocr2/image_processing_got_ocr2.py, internvl/video_processing_internvl.py.
void read_native(const checkpoint::HfConfig& files, Processing& p) {
  common::PixelScaling scaling{.image_mean = kImageNetMean, .image_std = kImageNetStd};
  const auto file = files.image_processor();
  if (file) {
    scaling = common::read_scaling(*file, common::kClipScaling);
    common::check_size(*file, p.view.side_px);
    common::require_number(*file, "resample", 3);  // Pillow's number of bicubic
    read_tiles(*file, "min_patches", "max_patches", p);
  }
  if (const auto video = files.video_processor()) {
    const common::PixelScaling of_videos = common::read_scaling(*video, common::kClipScaling);
    std::string keys = common::differing_keys(of_videos, scaling);
    if (!common::has_size(*video, p.view.side_px)) keys += keys.empty() ? "size" : ", size";
    p.video_refusal = common::video_refusal(*video, keys);
  }
  p.normalize = scaling.table();
  p.assumptions = common::missing_text(
      file ? file->path() : files.directory + "/preprocessor_config.json", file.has_value(),
      {common::assumed(file, "image_mean", common::channel_text(scaling.image_mean)),
       common::assumed(file, "image_std", common::channel_text(scaling.image_std))});
  p.sources = native_sources(files);
}

}  // namespace

Processing read_processing(const checkpoint::HfConfig& files, const Config& c,
                           const MediaOptions& media) {
  const bool chat = c.format != Format::kNative;
  const auto engine = chat ? media::ResizeEngine::kPillow : media::ResizeEngine::kTorchvision;
  Processing p{.view = c.view, .engine = common::resize_engine(media, engine)};
  chat ? read_chat(files.config.root(), p) : read_native(files, p);
  return p;
}

ItemPlan Processor::plan_image(std::int64_t width_px, std::int64_t height_px) const {
  common::check_area(width_px, height_px);
  const Tiling tiling =
      common::nearest_tiling(width_px, height_px, p_.view.side_px, p_.min_tiles, p_.max_tiles);
  const bool thumbnail = p_.use_thumbnail && tiling.count() > 1;
  return common::plan_tiles(width_px, height_px, tiling,
                            {p_.view, tiling.count() + (thumbnail ? 1 : 0)});
}

ItemPlan Processor::plan_video(std::int64_t num_frames, std::int64_t width_px,
                               std::int64_t height_px) const {
  FOVEA_CHECK(p_.video_refusal.empty(), kUnsupported, p_.video_refusal);
  FOVEA_CHECK(num_frames >= 1, kInvalidArgument, "a video needs at least 1 frame, got ",
              num_frames);
  common::check_area(width_px, height_px);
  ItemPlan plan = common::plan_tiles(width_px, height_px, {}, {p_.view, num_frames});
  plan.modality = Modality::kVideo;
  plan.num_frames = num_frames;
  plan.grid[0] = num_frames;
  return plan;
}

std::vector<std::int64_t> Processor::sample_frames(std::int64_t total_frames, double video_fps,
                                                   double target_fps) const {
  return common::sample_evenly(total_frames, video_fps, target_fps, kMaxFrames);
}

void Processor::fill_frame(const ItemPlan& plan, std::int64_t index, const RgbView& frame,
                           std::span<std::uint8_t> out) const {
  common::check_frame(plan, index, frame, out);
  const std::int64_t side = p_.view.side_px;
  const Tiling tiling{.cols = plan.grid[2], .rows = plan.grid[1]};
  const auto tile_bytes = static_cast<std::size_t>(tiling.count()) * p_.view.pixel_bytes();
  const media::Image image =
      common::resized(frame, plan.resized_width_px, plan.resized_height_px, p_.engine);
  common::cut_tiles(common::view_of(image), tiling, side,
                    out.subspan(static_cast<std::size_t>(index) * tile_bytes, tile_bytes));
  const bool has_thumbnail = plan.modality == Modality::kImage && out.size() > tile_bytes;
  if (has_thumbnail) {
    common::resize(frame, side, side, p_.engine, media::ResizeFilter::kBicubic,
                   out.subspan(tile_bytes));
  }
}

}  // namespace fovea::internvl
