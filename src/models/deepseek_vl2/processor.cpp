// From an image to its global view and its tiles.
#include "models/deepseek_vl2/processor.h"

#include <algorithm>
#include <array>
#include <vector>

#include "core/check.h"
#include "models/common/frames.h"
#include "models/common/processor_file.h"
#include "models/common/views/tiles.h"

namespace fovea::deepseek_vl2 {

namespace {

double f64(std::int64_t value) { return static_cast<double>(value); }

/// Where an image lies on a canvas.
common::CanvasRect fit(Resolution canvas, std::int64_t width_px, std::int64_t height_px) {
  return common::pillow_fit(canvas.width_px, canvas.height_px, width_px, height_px);
}

Resolution canvas_of(const ItemPlan& plan) {
  return {plan.resized_width_px, plan.resized_height_px};
}

}  // namespace

Processing read_processing(const checkpoint::HfConfig& files, const MediaOptions& media) {
  Processing p{.scaling = common::read_to_tensor_scaling(files)};
  p.engine = common::resize_engine(media, p.engine);
  return p;
}

Resolution best_resolution(const Config& config, std::int64_t width_px, std::int64_t height_px) {
  Resolution best = config.candidate_resolutions.front();
  std::int64_t most = 0;
  std::int64_t least_wasted = 0;
  for (const Resolution& r : config.candidate_resolutions) {
    const double scale =
        std::min(f64(r.width_px) / f64(width_px), f64(r.height_px) / f64(height_px));
    const auto width = static_cast<std::int64_t>(f64(width_px) * scale);
    const auto height = static_cast<std::int64_t>(f64(height_px) * scale);
    const std::int64_t kept = std::min(width * height, width_px * height_px);
    const std::int64_t wasted = r.width_px * r.height_px - kept;
    if (kept > most || (kept == most && wasted < least_wasted)) {
      best = r;
      most = kept;
      least_wasted = wasted;
    }
  }
  return best;
}

ItemPlan Processor::plan_image(std::int64_t width_px, std::int64_t height_px) const {
  common::check_area(width_px, height_px);
  const std::int64_t side = config_.tower.view.side_px;
  const Resolution canvas = best_resolution(config_, width_px, height_px);
  const common::CanvasRect global = fit({side, side}, width_px, height_px);
  const common::CanvasRect local = fit(canvas, width_px, height_px);
  FOVEA_CHECK(std::min({global.width, global.height, local.width, local.height}) >= 1,
              kInvalidArgument, "image of ", width_px, "x", height_px,
              " pixels is too thin: fitted into ", side, "x", side, " it would be ", global.width,
              "x", global.height);
  const common::Tiling tiling{.cols = canvas.width_px / side, .rows = canvas.height_px / side};
  ItemPlan plan =
      common::plan_views(width_px, height_px, tiling, {{config_.tower.view, 1 + tiling.count()}});
  plan.resized_width_px = canvas.width_px;
  plan.resized_height_px = canvas.height_px;
  plan.target_width_px = std::max(global.width, local.width);
  plan.target_height_px = std::max(global.height, local.height);
  const std::int64_t tokens = config_.tokens_side();
  plan.spec.units[0].rows = config_.tokens();
  plan.spec.path_tokens[0] = plan.spec.units[0].count * config_.tokens();
  plan.spec.out_rows =
      tokens * (tokens + 1) + 1 + tiling.rows * tokens * (tiling.cols * tokens + 1);
  return plan;
}

void Processor::fill_frame(const ItemPlan& plan, std::int64_t index, const RgbView& frame,
                           std::span<std::uint8_t> out) const {
  common::check_frame(plan, index, frame, out);
  const common::SquareView& view = config_.tower.view;
  const common::Tiling tiling{.cols = plan.grid[2], .rows = plan.grid[1]};
  fill_canvas(plan, frame, {view.side_px, view.side_px}, out.first(view.pixel_bytes()));
  const Resolution canvas = canvas_of(plan);
  std::vector<std::uint8_t> large(static_cast<std::size_t>(3 * canvas.width_px * canvas.height_px));
  fill_canvas(plan, frame, canvas, large);
  common::cut_tiles({large.data(), canvas.width_px, canvas.height_px}, tiling, view.side_px,
                    out.subspan(view.pixel_bytes()));
}

void Processor::fill_canvas(const ItemPlan& plan, RgbView image, Resolution canvas,
                            std::span<std::uint8_t> out) const {
  const common::CanvasRect rect = fit(canvas, plan.source_width_px, plan.source_height_px);
  std::array<std::uint8_t, 3> background{};
  for (std::size_t c = 0; c < 3; ++c) {
    const float level = std::clamp(p_.scaling.image_mean[c] * 255.0f, 0.0f, 255.0f);
    background[c] = static_cast<std::uint8_t>(level);
  }
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = background[i % 3];
  const media::Image fitted = common::resized(image, rect.width, rect.height, p_.engine);
  common::paste(common::view_of(fitted), rect.x, rect.y, canvas.width_px, out);
}

}  // namespace fovea::deepseek_vl2
