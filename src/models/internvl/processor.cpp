// From images and frames to square views.
#include "models/internvl/processor.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/check.h"
#include "models/blocks/config_reader.h"
#include "models/blocks/processor_file.h"

namespace fovea::internvl {

namespace {

using blocks::Tiling;

constexpr std::int64_t kMaxTiles = 1024;  // far above the 40 that anybody has used
constexpr std::int64_t kMaxFrames = 32;   // of a video, vLLM's default
constexpr std::array<float, 3> kImageNetMean{0.485f, 0.456f, 0.406f};
constexpr std::array<float, 3> kImageNetStd{0.229f, 0.224f, 0.225f};

void read_tiles(const JsonView& file, const char* least, const char* most, Processing& p) {
  p.min_tiles = blocks::read_size(file, least, p.min_tiles, kMaxTiles);
  p.max_tiles = blocks::read_size(file, most, p.max_tiles, kMaxTiles);
  FOVEA_CHECK(p.min_tiles <= p.max_tiles, kCorruptData, file.path(), ": expected ", least,
              " <= ", most, ", got ", p.min_tiles, " and ", p.max_tiles);
}

/// How bytes become values, as a processor file of transformers says it.
struct Scaling {
  std::array<float, 3> mean = kImageNetMean;
  std::array<float, 3> std = kImageNetStd;
  double rescale_factor = 1.0 / 255.0;
  friend bool operator==(const Scaling&, const Scaling&) = default;
};

Scaling read_scaling(const JsonView& file, const Scaling& fallback) {
  for (const char* step : {"do_resize", "do_rescale", "do_normalize"}) {
    FOVEA_CHECK(file.bool_or(step, true), kUnsupported, file.path(), ".", step,
                ": false is not supported");
  }
  return {.mean = blocks::read_channels(file, "image_mean", fallback.mean),
          .std = blocks::read_positive_channels(file, "image_std", fallback.std),
          .rescale_factor = blocks::read_positive(file, "rescale_factor", fallback.rescale_factor)};
}

void check_side(const JsonView& file, std::int64_t side_px) {
  const auto size = file.find("size");
  for (const char* side : {"height", "width"}) {
    const std::int64_t value = !size               ? side_px
                               : size->is_object() ? blocks::read_size(*size, side, side_px)
                                                   : blocks::as_size(*size);
    FOVEA_CHECK(value == side_px, kUnsupported, file.path(), ".size.", side, ": ", value,
                " would need positions other than those of vision_config.image_size, ", side_px);
  }
}

std::string assumptions_of(const checkpoint::HfConfig& files, const Scaling& scaling) {
  const auto file = files.image_processor();
  const auto has = [&](const char* key) { return file && file->find(key); };
  return blocks::missing_text(
      file ? file->path() : files.directory + "/preprocessor_config.json", file.has_value(),
      {{has("image_mean"), "image_mean", cat("image_mean=", blocks::channel_text(scaling.mean))},
       {has("image_std"), "image_std", cat("image_std=", blocks::channel_text(scaling.std))}});
}

/// The authors' format: config.json has numbers of tiles, the rest is fixed in their code.
void read_chat(const JsonView& root, Processing& p) {
  p.max_tiles = 6;
  read_tiles(root, "min_dynamic_patch", "max_dynamic_patch", p);
  if (!root.bool_or("dynamic_image_size", false)) p.min_tiles = p.max_tiles = 1;
  p.use_thumbnail = root.bool_or("use_thumbnail", false);
  p.normalize = media::to_tensor_normalize_table(kImageNetMean, kImageNetStd);
}

/// The format of transformers, whose processor cuts images whatever crop_to_patches says.
void read_native(const checkpoint::HfConfig& files, Processing& p) {
  Scaling scaling;
  if (const auto file = files.image_processor()) {
    scaling = read_scaling(*file, scaling);
    check_side(*file, p.view.side_px);
    read_tiles(*file, "min_patches", "max_patches", p);
  }
  if (const auto file = files.video_processor()) {
    FOVEA_CHECK(read_scaling(*file, scaling) == scaling, kUnsupported, file->path(),
                ": videos that are rescaled or normalised otherwise than images are not supported");
  }
  p.normalize = media::fused_normalize_table(scaling.mean, scaling.std, scaling.rescale_factor);
  p.assumptions = assumptions_of(files, scaling);
}

}  // namespace

Processing read_processing(const checkpoint::HfConfig& files, const Config& c,
                           const MediaOptions& media) {
  const bool chat = c.format == Format::kChat;
  const bool pillow = media.image_backend == ImageBackend::kModelDefault
                          ? chat
                          : media.image_backend == ImageBackend::kPillow;
  Processing p{.view = c.view(),
               .tokens_per_view = c.tokens_per_view(),
               .engine = pillow ? media::ResizeEngine::kPillow : media::ResizeEngine::kTorchvision};
  chat ? read_chat(files.config.root(), p) : read_native(files, p);
  return p;
}

ItemPlan Processor::make_plan(Modality modality, std::int64_t width_px, std::int64_t height_px,
                              std::int64_t num_frames, Tiling tiling, std::int64_t views) const {
  FOVEA_CHECK(width_px >= 1 && height_px >= 1, kInvalidArgument, "image of ", width_px, "x",
              height_px, " pixels has no area");
  ItemPlan plan;
  plan.modality = modality;
  plan.source_width_px = width_px;
  plan.source_height_px = height_px;
  plan.num_frames = num_frames;
  plan.resized_width_px = tiling.cols * p_.view.side_px;
  plan.resized_height_px = tiling.rows * p_.view.side_px;
  plan.grid = {num_frames, tiling.rows, tiling.cols};
  plan.pixel_bytes = static_cast<std::size_t>(views) * p_.view.pixel_bytes();
  plan.spec.input_rows = views * p_.view.patches();
  plan.spec.num_seqs = 1;  // sequences are views, whose number the capacity in tokens bounds
  plan.spec.out_rows = views * p_.tokens_per_view;
  plan.spec.path_tokens[0] = plan.spec.out_rows;
  return plan;
}

ItemPlan Processor::plan_image(std::int64_t width_px, std::int64_t height_px) const {
  const Tiling tiling =
      blocks::nearest_tiling(width_px, height_px, p_.view.side_px, p_.min_tiles, p_.max_tiles);
  const bool thumbnail = p_.use_thumbnail && tiling.count() > 1;
  return make_plan(Modality::kImage, width_px, height_px, 1, tiling,
                   tiling.count() + (thumbnail ? 1 : 0));
}

ItemPlan Processor::plan_video(std::int64_t num_frames, std::int64_t width_px,
                               std::int64_t height_px) const {
  FOVEA_CHECK(num_frames >= 1, kInvalidArgument, "a video needs at least 1 frame, got ",
              num_frames);
  return make_plan(Modality::kVideo, width_px, height_px, num_frames, {}, num_frames);
}

std::vector<std::int64_t> Processor::sample_frames(std::int64_t total_frames, double video_fps,
                                                   double target_fps) const {
  double most = static_cast<double>(std::min(total_frames, kMaxFrames));
  const auto total = static_cast<double>(total_frames);
  if (video_fps > 0) most = std::min(most, std::floor(total / video_fps * target_fps));
  const auto count = std::max<std::int64_t>(1, static_cast<std::int64_t>(most));
  const double step = count > 1 ? (total - 1) / static_cast<double>(count - 1) : 0;
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < count; ++i) {
    indices.push_back(static_cast<std::int64_t>(static_cast<double>(i) * step));
  }
  if (count > 1) indices.back() = total_frames - 1;
  return indices;
}

void Processor::fill_pixels(const ItemPlan& plan, std::span<const RgbView> frames,
                            std::span<std::uint8_t> out) const {
  FOVEA_CHECK(std::ssize(frames) == plan.num_frames, kInvalidArgument, "planned were ",
              plan.num_frames, " frames, got ", frames.size());
  FOVEA_CHECK(out.size() == plan.pixel_bytes, kInternal, "pixels need ", plan.pixel_bytes,
              " bytes, got ", out.size());
  const std::int64_t side = p_.view.side_px;
  const Tiling tiling{.cols = plan.grid[2], .rows = plan.grid[1]};
  const auto tile_bytes = static_cast<std::size_t>(tiling.count()) * p_.view.pixel_bytes();
  for (const RgbView& frame : frames) {
    FOVEA_CHECK(frame.width_px == plan.source_width_px && frame.height_px == plan.source_height_px,
                kInvalidArgument, "image is ", frame.width_px, "x", frame.height_px,
                " pixels, planned was ", plan.source_width_px, "x", plan.source_height_px);
    blocks::cut_tiles(
        blocks::resized(frame, plan.resized_width_px, plan.resized_height_px, p_.engine), tiling,
        side, out.first(tile_bytes));
    out = out.subspan(tile_bytes);
  }
  if (!out.empty()) {  // the thumbnail
    std::ranges::copy(blocks::resized(frames.front(), side, side, p_.engine), out.begin());
  }
}

}  // namespace fovea::internvl
