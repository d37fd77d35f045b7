// config.json of Idefics3 and SmolVLM.
#include "models/idefics3/config.h"

#include <algorithm>
#include <array>
#include <string>

#include "core/check.h"
#include "models/common/config_reader.h"

namespace fovea::idefics3 {

namespace {

/// The names that files have for the tower; the first version of SmolVLM has those of Idefics3.
void check_tower(const JsonView& vision) {
  constexpr std::array<std::string_view, 4> kNames{"idefics3", "idefics3_vision", "smolvlm",
                                                   "smolvlm_vision"};
  const std::string name = vision.string_or("model_type", "idefics3_vision");
  FOVEA_CHECK(std::ranges::find(kNames, name) != kNames.end(), kUnsupported, vision.path(),
              ".model_type: expected idefics3, idefics3_vision, smolvlm or smolvlm_vision, got ",
              name);
}

/// The side of a view. Where a file is silent, the reference's class has 364; without a file the
/// views have the size of the tower.
std::int64_t read_view_side(const checkpoint::HfConfig& files, std::int64_t image_size) {
  constexpr const char* kKey = "max_image_size";
  constexpr std::int64_t kClassDefault = 364;
  const auto file = files.image_processor();
  if (!file) return image_size;
  const auto size = file->find(kKey);
  return size ? common::as_size(size->at("longest_edge"), kMaxSide) : kClassDefault;
}

}  // namespace

Config parse_config(const checkpoint::HfConfig& files, Format format) {
  const JsonView root = files.config.root();
  const JsonView vision = root.at("vision_config");
  check_tower(vision);
  common::require_number(vision, "num_channels", 3);
  Config c{.format = format,
           .tower = common::read_siglip_layers(vision,
                                               {.hidden_size = 1152, .num_attention_heads = 16})};
  const std::int64_t image_size = common::read_size(vision, "image_size", 224, kMaxSide);
  common::SquareView& view = c.tower.view;
  view.side_px = read_view_side(files, image_size);
  view.patch_px = common::read_size(vision, "patch_size", 32, std::min(image_size, view.side_px));
  view.merge = common::read_size(root, "scale_factor", 2, kMaxSide);
  // Pixels beyond the last whole patch are not read.
  c.position_side = image_size / view.patch_px;
  FOVEA_CHECK(view.grid() % view.merge == 0, kUnsupported, root.path(),
              ": scale_factor: ", view.merge, " does not divide a grid of ", view.grid(), "x",
              view.grid(), " patches");
  c.text_hidden_size = common::as_size(root.at("text_config").at("hidden_size"));
  return c;
}

}  // namespace fovea::idefics3
