// config.json of Step3-VL.
#include "models/step3_vl/config.h"

#include "models/common/config_reader.h"
#include "models/common/processor_file.h"

namespace fovea::step3_vl {

namespace {

void read_tower(const JsonView& vision, Config& c) {
  common::read_transformer(vision, c);
  c.output_hidden_size = common::read_size(vision, "output_hidden_size", c.output_hidden_size);
  c.hidden_act = common::parse_activation(vision.string_or("hidden_act", "quick_gelu"),
                                          vision.path() + ".hidden_act");
  c.layer_norm_eps = common::read_positive(vision, "layer_norm_eps", c.layer_norm_eps);
  c.enable_patch = vision.bool_or("enable_patch", c.enable_patch);
  common::require_number(vision, "image_size", kViews[kGlobal].side_px);
  common::require_number(vision, "patch_size", Config::kPatch);
  common::require_number(vision, "num_channels", 3);
}

}  // namespace

Config parse_config(const checkpoint::HfConfig& files) {
  const JsonView root = files.config.root();
  Config c;
  read_tower(root.at("vision_config"), c);
  common::require_number(root, "understand_projector_stride", 2);
  c.text_hidden_size = common::read_size(root, "hidden_size", c.text_hidden_size);
  if (const auto text = root.find("text_config")) {
    c.text_hidden_size = common::read_size(*text, "hidden_size", c.text_hidden_size);
    for (const char* const key : {"max_seq_len", "max_position_embeddings"}) {
      if (const auto most = text->find(key)) c.max_tokens = common::as_size(*most);
    }
  }
  return c;
}

}  // namespace fovea::step3_vl
