// The processor files of families over square views of one size.
#include "models/common/views/processing.h"

#include <vector>

#include "core/check.h"
#include "models/common/config_reader.h"
#include "models/common/frames.h"
#include "models/common/views/tiles.h"

namespace fovea::common {

namespace {

/// Pillow's number of a filter, which files have under "resample".
double number_of(media::ResizeFilter filter) {
  switch (filter) {
    case media::ResizeFilter::kBilinear: return 2;
    case media::ResizeFilter::kBicubic: return 3;
    case media::ResizeFilter::kLanczos: return 1;
  }
  return 0;
}

}  // namespace

ViewProcessing read_view_processing(const checkpoint::HfConfig& files, const SquareView& view,
                                    const MediaOptions& media, const ViewProcessorClass& reference,
                                    std::initializer_list<std::string_view> keys) {
  ViewProcessing p{.view = view,
                   .engine = resize_engine(media, media::ResizeEngine::kTorchvision),
                   .filter = reference.filter,
                   .scaling = reference.without_file};
  const auto file = files.image_processor();
  if (file) {
    p.scaling = read_scaling(*file, reference.scaling);
    check_size(*file, view.side_px);
    require_number(*file, "resample", number_of(reference.filter));
  }
  p.assumptions =
      missing_text(files, {assumed(file, "image_mean", channel_text(p.scaling.image_mean)),
                           assumed(file, "image_std", channel_text(p.scaling.image_std))});
  std::vector<SourcedKey> all =
      sourced(file, {"size", "image_mean", "image_std", "rescale_factor", "resample"});
  const std::vector<SourcedKey> own = sourced(file, keys);
  all.insert(all.end(), own.begin(), own.end());
  p.sources = sources_text("image", file, all);
  return p;
}

void read_video_views(const checkpoint::HfConfig& files, ViewProcessing& processing) {
  const auto file = files.video_processor();
  processing.sources +=
      " " + sources_text("video", file,
                         sourced(file, {"size", "image_mean", "image_std", "rescale_factor"}));
  if (!file) return;
  std::string keys = differing_keys(read_scaling(*file, kClipScaling), processing.scaling);
  if (!has_size(*file, processing.view.side_px)) keys += keys.empty() ? "size" : ", size";
  processing.video_refusal = video_refusal(*file, keys);
}

ItemPlan ViewProcessor::plan_frames(std::int64_t num_frames, std::int64_t width_px,
                                    std::int64_t height_px) const {
  FOVEA_CHECK(processing_.video_refusal.empty(), kUnsupported, processing_.video_refusal);
  FOVEA_CHECK(num_frames >= 1, kInvalidArgument, "a video needs at least 1 frame, got ",
              num_frames);
  check_area(width_px, height_px);
  ItemPlan plan = plan_tiles(width_px, height_px, {}, {processing_.view, num_frames});
  plan.modality = Modality::kVideo;
  plan.num_frames = num_frames;
  plan.grid[0] = num_frames;
  return plan;
}

void ViewProcessor::fill_frame(const ItemPlan& plan, std::int64_t index, const RgbView& frame,
                               std::span<std::uint8_t> out) const {
  check_frame(plan, index, frame, out);
  const std::size_t view_bytes = processing_.view.pixel_bytes();
  const Tiling tiling{.cols = plan.grid[2], .rows = plan.grid[1]};
  if (tiling.count() == 1) {
    return fill_view(frame, out.subspan(static_cast<std::size_t>(index) * view_bytes, view_bytes));
  }
  const auto tile_bytes = static_cast<std::size_t>(tiling.count()) * view_bytes;
  const media::Image image = resized(frame, plan.resized_width_px, plan.resized_height_px,
                                     processing_.engine, processing_.filter);
  cut_tiles(view_of(image), tiling, processing_.view.side_px, out.first(tile_bytes));
  if (out.size() > tile_bytes) fill_view(frame, out.subspan(tile_bytes));
}

void ViewProcessor::fill_view(const RgbView& image, std::span<std::uint8_t> out) const {
  const std::int64_t side = processing_.view.side_px;
  resize(image, side, side, processing_.engine, processing_.filter, out);
}

}  // namespace fovea::common
