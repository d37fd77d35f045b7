// The processor files of the three formats of LLaVA.
#include <optional>

#include "core/check.h"
#include "models/common/config_reader.h"
#include "models/common/views/canvas.h"
#include "models/llava/processor.h"

namespace fovea::llava {

namespace {

constexpr const char* kPinpoints = "image_grid_pinpoints";

/// Requires that a size, where it is there, is that of a view.
void check_sides(const JsonView& file, std::string_view key, std::int64_t side_px) {
  const auto size = file.find(key);
  if (!size) return;
  const auto check = [&](const JsonView& value) {
    const std::int64_t side = common::as_size(value);
    FOVEA_CHECK(side == side_px, kUnsupported, value.path(), ": ", side,
                " contradicts config.json, which says ", side_px);
  };
  if (!size->is_object()) return check(*size);
  for (const char* name : {"shortest_edge", "height", "width"}) {
    if (const auto value = size->find(name)) check(*value);
  }
}

/// The tower reads those of config.json to arrange what the processor has cut by its own.
void read_canvas_rule(const checkpoint::HfConfig& files, const Config& config, Processing& p) {
  const std::int64_t side_px = config.tower.view.side_px;
  const JsonView list = files.config.root().at(kPinpoints);
  p.canvases = common::read_canvases(list, side_px);
  p.max_canvas_views = config.max_canvas_views;
  const auto file = files.image_processor();
  if (!file) return;
  const auto own = file->find(kPinpoints);
  FOVEA_CHECK(!own || common::read_canvases(*own, side_px) == p.canvases, kCorruptData,
              file->path(), ".", kPinpoints, ": contradicts ", list.path());
  check_sides(*file, "size", side_px);
  if (file->bool_or("do_center_crop", p.format == Format::kNext)) {
    check_sides(*file, "crop_size", side_px);
  }
}

/// LLaVA 1.5 has no processor of its own: CLIP's keeps the ratio and cuts out the centre, a number
/// being the shorter side; that of SigLIP does not keep it.
void read_square_rule(const JsonView& file, const Config& config, Processing& p) {
  const std::int64_t side_px = config.tower.view.side_px;
  const bool is_clip = config.kind == Tower::kClip;
  common::require_flag(file, "do_pad", false);
  if (const auto size = file.find("size")) {
    const auto edge = size->is_object() ? size->find("shortest_edge")
                      : is_clip         ? size
                                        : std::optional<JsonView>();
    p.shortest_edge = edge ? common::as_size(*edge, 4096) : 0;
    if (!edge) check_sides(file, "size", side_px);
    FOVEA_CHECK(!edge || p.shortest_edge >= side_px, kUnsupported, size->path(), ": ",
                p.shortest_edge, " is less than the ", side_px, " of config.json");
  }
  if (p.shortest_edge > 0) common::require_flag(file, "do_center_crop", true);
  if (file.bool_or("do_center_crop", is_clip)) check_sides(file, "crop_size", side_px);
}

}  // namespace

Processing read_processing(const checkpoint::HfConfig& files, const Config& config,
                           const MediaOptions& media) {
  const std::int64_t side_px = config.tower.view.side_px;
  const bool is_square = config.format == Format::kLlava;
  const bool is_clip = config.kind == Tower::kClip;
  const common::PixelScaling of_tower = is_clip ? common::kClipScaling : common::PixelScaling{};
  // Files of LLaVA 1.5 are read by the class that belongs to the tower.
  Processing p{
      .format = config.format,
      .views = common::read_view_processing(
          files, config.tower.view, media,
          {.scaling = is_square ? of_tower : common::kClipScaling, .without_file = of_tower},
          {"crop_size", kPinpoints}),
      .shortest_edge = is_square && is_clip ? side_px : 0,
      .canvases = {}};
  const auto file = files.image_processor();
  if (is_square && file) read_square_rule(*file, config, p);
  if (!is_square) read_canvas_rule(files, config, p);
  if (config.format == Format::kOnevision) common::read_video_views(files, p.views);
  return p;
}

}  // namespace fovea::llava
