// config.json of DeepSeek-VL2.
#include "models/deepseek_vl2/config.h"

#include <algorithm>

#include "core/check.h"
#include "models/common/config_reader.h"
#include "models/common/processor_file.h"

namespace fovea::deepseek_vl2 {

namespace {

common::SiglipConfig read_tower(const JsonView& vision, common::SiglipConfig c) {
  common::require_flag(vision, "class_token", false);
  common::require_flag(vision, "ignore_head", true);
  c.hidden_size = common::read_size(vision, "width", c.hidden_size);
  c.num_hidden_layers = common::read_size(vision, "layers", c.num_hidden_layers, common::kMaxDepth);
  c.num_attention_heads = common::read_size(vision, "heads", c.num_attention_heads);
  const double ratio = common::read_positive(vision, "mlp_ratio", 3.7362);
  FOVEA_CHECK(ratio <= 64, kCorruptData, vision.path(), ".mlp_ratio: expected at most 64, got ",
              ratio);
  const double wide = static_cast<double>(c.hidden_size) * ratio;
  c.intermediate_size = std::max<std::int64_t>(1, static_cast<std::int64_t>(wide));
  // Pixels behind the last whole patch of a view are not read.
  constexpr std::int64_t kMaxSide = 4096;
  c.view.side_px = common::read_size(vision, "image_size", c.view.side_px, kMaxSide);
  c.view.patch_px = common::read_size(vision, "patch_size", c.view.patch_px, kMaxSide);
  FOVEA_CHECK(c.view.grid() >= 1, kCorruptData, vision.path(), ".image_size: ", c.view.side_px,
              " pixels hold no patch of ", c.view.patch_px);
  common::check_heads(vision, c.hidden_size, c.num_attention_heads);
  return c;
}

void read_projector(const JsonView& projector, Config& c) {
  common::require_text(projector, "projector_type", "downsample_mlp_gelu");
  common::require_flag(projector, "token_pooling", false);
  common::require_number(projector, "downsample_ratio", 2);
  common::require_number(projector, "depth", 2);
  common::require_number(projector, "input_dim", static_cast<double>(c.tower.hidden_size));
  c.n_embed = common::read_size(projector, "n_embed", c.n_embed);
  const std::int64_t ratio = common::read_size(projector, "mlp_ratio", 1, 64);
  c.projector_width = c.n_embed * ratio;
}

std::vector<Resolution> read_resolutions(const JsonView& root, std::int64_t side_px) {
  constexpr std::size_t kMost = 1024;
  constexpr std::int64_t kMaxSide = std::int64_t{1} << 14;
  const auto list = root.find("candidate_resolutions");
  if (!list) return {{side_px, side_px}};
  FOVEA_CHECK(list->num_elements() >= 1 && list->num_elements() <= kMost, kCorruptData,
              list->path(), ": expected 1 to ", kMost, " resolutions, got ", list->num_elements());
  std::vector<Resolution> resolutions;
  for (const JsonView& pair : list->elements()) {
    const std::vector<JsonView> sides = common::elements_of(pair, 2);
    const Resolution r{common::as_size(sides[0], kMaxSide), common::as_size(sides[1], kMaxSide)};
    FOVEA_CHECK(r.width_px % side_px == 0 && r.height_px % side_px == 0, kUnsupported, pair.path(),
                ": ", r.width_px, "x", r.height_px, " is not made of views of ", side_px);
    resolutions.push_back(r);
  }
  return resolutions;
}

}  // namespace

Config parse_config(const checkpoint::HfConfig& files) {
  const JsonView root = files.config.root();
  Config c;
  common::require_text(root, "tile_tag", "2D");
  const std::string order = root.string_or("global_view_pos", "head");
  FOVEA_CHECK(order == "head" || order == "tail", kUnsupported, root.path(),
              ".global_view_pos: head and tail are supported, got ", order);
  c.global_first = order == "head";
  c.tower = read_tower(root.at("vision_config"), c.tower);
  read_projector(root.at("projector_config"), c);
  c.candidate_resolutions = read_resolutions(root, c.tower.view.side_px);
  return c;
}

}  // namespace fovea::deepseek_vl2
