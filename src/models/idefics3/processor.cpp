// From images and frames to square views. An image is resized two or three times in succession,
// each time to bytes: to its longest edge, to whole tiles, and to the view that shows all of it.
#include "models/idefics3/processor.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "models/common/config_reader.h"
#include "models/common/frames.h"
#include "models/common/grid/processor_file.h"
#include "models/common/views/tiles.h"

namespace fovea::idefics3 {

namespace {

using common::Size2d;
using common::Tiling;

constexpr const char* kSize = "size";
constexpr const char* kViewSize = "max_image_size";
constexpr const char* kEdge = "longest_edge";
constexpr const char* kSampling = "video_sampling";

/// A side by the other one and the ratio of both, a double, rounded down as the reference does it.
std::int64_t scaled_height(std::int64_t width_px, double aspect) {
  return static_cast<std::int64_t>(static_cast<double>(width_px) / aspect);
}
std::int64_t scaled_width(std::int64_t height_px, double aspect) {
  return static_cast<std::int64_t>(static_cast<double>(height_px) * aspect);
}

double aspect_of(const Size2d& size) {
  return static_cast<double>(size.width_px) / static_cast<double>(size.height_px);
}

std::int64_t round_up(std::int64_t side, std::int64_t step) {
  return (side + step - 1) / step * step;
}

/// The longer side becomes `edge`; the other side at least 1, and even if `is_even`.
Size2d with_edge(const Size2d& size, std::int64_t edge, bool is_even) {
  const double aspect = aspect_of(size);
  const bool is_wide = size.width_px >= size.height_px;
  std::int64_t other = is_wide ? scaled_height(edge, aspect) : scaled_width(edge, aspect);
  other = std::max<std::int64_t>(is_even ? round_up(other, 2) : other, 1);
  return is_wide ? Size2d{other, edge} : Size2d{edge, other};
}

/// The tiling of an image of `size`: sides grow to whole tiles, the longer one first.
Tiling tiling_of(const Size2d& size, std::int64_t tile_px) {
  const double aspect = aspect_of(size);
  if (size.width_px >= size.height_px) {
    const std::int64_t width = round_up(size.width_px, tile_px);
    return {width / tile_px, round_up(scaled_height(width, aspect), tile_px) / tile_px};
  }
  const std::int64_t height = round_up(size.height_px, tile_px);
  return {round_up(scaled_width(height, aspect), tile_px) / tile_px, height / tile_px};
}

std::int64_t read_edge(const JsonView& object, std::string_view key, std::int64_t fallback) {
  const auto size = object.find(key);
  return size ? common::as_size(size->at(kEdge)) : fallback;
}

/// A view whose values are all 0 is padding to the reference, which makes no rows of it.
void check_no_image_is_padding(const common::ViewProcessing& views, const std::string& file) {
  const media::NormalizeTable table = views.scaling.table();
  const bool has_zeros = std::ranges::all_of(
      table, [](const auto& channel) { return std::ranges::count(channel, 0.0f) > 0; });
  FOVEA_CHECK(!has_zeros, kUnsupported, file,
              ": image_mean, image_std: ", common::channel_text(views.scaling.image_mean), " and ",
              common::channel_text(views.scaling.image_std),
              " turn a colour into 0, the value of padding, which is not supported");
}

void read_video(const JsonView& file, std::int64_t side_px, Processing& p) {
  const common::PixelScaling scaling = common::read_scaling(file, {});
  std::string keys = common::differing_keys(scaling, p.views.scaling);
  if (read_edge(file, kViewSize, 364) != side_px) {
    keys += cat(keys.empty() ? "" : ", ", kViewSize);
  }
  p.views.video_refusal = common::video_refusal(file, keys);
  common::require_number(file, "resample", 1);
  p.max_frames = common::read_size(file, "num_frames", p.max_frames);
  // size counts even where video_sampling has another.
  if (const auto sampling = file.find(kSampling)) {
    p.video_longest_edge = read_edge(*sampling, "video_size", p.video_longest_edge);
    p.max_frames = common::read_size(*sampling, "max_frames", p.max_frames);
  }
  p.video_longest_edge = std::min(read_edge(file, kSize, p.video_longest_edge), kMaxSide);
}

}  // namespace

Size2d first_size(std::int64_t width_px, std::int64_t height_px, std::int64_t longest_edge) {
  const Size2d size = with_edge({height_px, width_px}, longest_edge, true);
  return longest_edge > kMaxSide ? with_edge(size, kMaxSide, false) : size;
}

Processing read_processing(const checkpoint::HfConfig& files, const Config& config,
                           const MediaOptions& media) {
  const std::int64_t side_px = config.tower.view.side_px;
  Processing p{.views = common::read_view_processing(files, config.tower.view, media,
                                                     {.filter = media::ResizeFilter::kLanczos},
                                                     {kViewSize, "do_image_splitting"}),
               .takes_videos = config.format == Format::kSmolVlm};
  const auto file = files.image_processor();
  if (file) {
    p.longest_edge = read_edge(*file, kSize, p.longest_edge);
    p.do_image_splitting = file->bool_or("do_image_splitting", p.do_image_splitting);
    check_no_image_is_padding(p.views, file->path());
  } else {
    p.longest_edge = 4 * side_px;
    p.views.assumptions += cat(" ", kEdge, "=", p.longest_edge, " ", kViewSize, "=", side_px);
  }
  if (!p.takes_videos) return p;
  const auto video = files.video_processor();
  if (video) {
    read_video(*video, side_px, p);
  } else {
    p.video_longest_edge = p.longest_edge;
  }
  p.views.sources += cat(
      " ", common::sources_text(
               "video", video,
               common::sourced(video, {kSize, kViewSize, kSampling, "image_mean", "image_std"})));
  return p;
}

Size2d Processor::first_size_of(const ItemPlan& plan) const {
  const bool is_image = plan.modality == Modality::kImage;
  return first_size(plan.source_width_px, plan.source_height_px,
                    is_image ? p_.longest_edge : p_.video_longest_edge);
}

ItemPlan Processor::plan_image(std::int64_t width_px, std::int64_t height_px) const {
  common::check_area(width_px, height_px);
  const common::SquareView& view = processing().view;
  const Size2d first = first_size(width_px, height_px, p_.longest_edge);
  const Tiling tiling = p_.do_image_splitting ? tiling_of(first, view.side_px) : Tiling{};
  const std::int64_t tiles = tiling.count();
  ItemPlan plan =
      common::plan_tiles(width_px, height_px, tiling, {view, tiles > 1 ? tiles + 1 : tiles});
  plan.target_width_px = first.width_px;
  plan.target_height_px = first.height_px;
  return plan;
}

ItemPlan Processor::plan_video(std::int64_t num_frames, std::int64_t width_px,
                               std::int64_t height_px) const {
  if (!p_.takes_videos) return ItemProcessor::plan_video(num_frames, width_px, height_px);
  ItemPlan plan = plan_frames(num_frames, width_px, height_px);
  const Size2d first = first_size_of(plan);
  plan.target_width_px = first.width_px;
  plan.target_height_px = first.height_px;
  return plan;
}

std::vector<std::int64_t> Processor::sample_frames(std::int64_t total_frames, double video_fps,
                                                   double target_fps) const {
  if (!p_.takes_videos) return ItemProcessor::sample_frames(total_frames, video_fps, target_fps);
  const double fps = video_fps > 0 ? video_fps : common::kUnknownFps;
  const auto total = static_cast<double>(total_frames);
  const auto most = static_cast<double>(p_.max_frames);
  const double seconds = total / fps;
  const double wanted = std::clamp(std::nearbyint(target_fps * seconds), 1.0, most);
  std::int64_t first = 0;
  std::int64_t last = total_frames - 1;
  // The reference compares seconds with frames times a rate.
  if (seconds - 2 > most * target_fps) {
    first = static_cast<std::int64_t>(fps);
    last = std::min(static_cast<std::int64_t>(total - fps), last);
  }
  if (first >= last) {
    first = 0;
    last = total_frames - 1;
  }
  std::vector<std::int64_t> frames =
      common::spread_frames(first, last, static_cast<std::int64_t>(wanted));
  frames.erase(std::unique(frames.begin(), frames.end()), frames.end());
  return frames;
}

void Processor::fill_frame(const ItemPlan& plan, std::int64_t index, const RgbView& frame,
                           std::span<std::uint8_t> out) const {
  common::check_frame(plan, index, frame, out);
  const common::SquareView& view = processing().view;
  const media::ResizeEngine engine = processing().engine;
  const media::ResizeFilter filter = processing().filter;
  const Tiling tiling{.cols = plan.grid[2], .rows = plan.grid[1]};
  const Size2d first = first_size_of(plan);
  const media::Image edged =
      common::resized(frame, first.width_px, first.height_px, engine, filter);
  const media::Image whole = common::resized(common::view_of(edged), plan.resized_width_px,
                                             plan.resized_height_px, engine, filter);
  const std::size_t tile_bytes = static_cast<std::size_t>(tiling.count()) * view.pixel_bytes();
  out = out.subspan(static_cast<std::size_t>(index) * tile_bytes);
  common::cut_tiles(common::view_of(whole), tiling, view.side_px, out.first(tile_bytes));
  if (tiling.count() > 1) fill_view(common::view_of(whole), out.subspan(tile_bytes));
}

}  // namespace fovea::idefics3
