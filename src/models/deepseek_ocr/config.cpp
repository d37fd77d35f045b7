// config.json of DeepSeek-OCR.
#include "models/deepseek_ocr/config.h"

#include "core/check.h"
#include "models/common/config_reader.h"

namespace fovea::deepseek_ocr {

namespace {

void read_clip(const JsonView& clip, Config& c) {
  c.clip_width = common::read_size(clip, "width", c.clip_width);
  c.clip_heads = common::read_size(clip, "heads", c.clip_heads);
  c.clip_layers = common::read_size(clip, "layers", c.clip_layers, common::kMaxDepth);
}

void check_consistent(const JsonView& root, const Config& c) {
  common::check_heads(root, c.clip_width, c.clip_heads);
  FOVEA_CHECK(c.feature_width() == c.clip_width, kCorruptData, root.path(), ": SAM features have ",
              c.feature_width(), " channels, CLIP takes ", c.clip_width);
  FOVEA_CHECK(c.projector_input_dim == c.clip_width + c.feature_width(), kCorruptData, root.path(),
              ": projector_config.input_dim: expected ", c.clip_width + c.feature_width(), ", got ",
              c.projector_input_dim);
}

}  // namespace

Config parse_config(const checkpoint::HfConfig& files) {
  const JsonView root = files.config.root();
  common::require_text(root, "tile_tag", "2D");
  Config c;
  const JsonView width = root.at("vision_config").at("width");
  common::read_sam(width.at("sam_vit_b"), c.sam);
  read_clip(width.at("clip-l-14-224"), c);
  const JsonView projector = root.at("projector_config");
  common::require_text(projector, "projector_type", "linear");
  c.projector_input_dim = common::read_size(projector, "input_dim", c.projector_input_dim);
  c.n_embed = common::read_size(projector, "n_embed", c.n_embed);
  constexpr const char* kPositions = "max_position_embeddings";
  c.max_position_embeddings = common::read_size(root, kPositions, c.max_position_embeddings);
  if (const auto language = root.find("language_config")) {  // most of it stands above as well
    c.max_position_embeddings = common::read_size(*language, kPositions, c.max_position_embeddings);
  }
  check_consistent(root, c);
  return c;
}

}  // namespace fovea::deepseek_ocr
