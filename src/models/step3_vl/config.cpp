// config.json of Step3-VL.
#include "models/step3_vl/config.h"

#include <string_view>

#include "core/check.h"
#include "models/blocks/activation.h"
#include "models/blocks/config_reader.h"

namespace fovea::step3_vl {

namespace {

/// A number of which the tower has only one.
void require(const JsonView& object, std::string_view key, std::int64_t only) {
  const std::int64_t value = object.int_or(key, only);
  FOVEA_CHECK(value == only, kUnsupported, object.path(), ": ", key, ": only ", only,
              " is supported, got ", value);
}

void read_tower(const JsonView& vision, Config& c) {
  c.hidden_size = blocks::read_size(vision, "hidden_size", c.hidden_size);
  c.num_hidden_layers =
      blocks::read_size(vision, "num_hidden_layers", c.num_hidden_layers, blocks::kMaxDepth);
  c.num_attention_heads = blocks::read_size(vision, "num_attention_heads", c.num_attention_heads);
  c.intermediate_size = blocks::read_size(vision, "intermediate_size", c.intermediate_size);
  c.output_hidden_size = blocks::read_size(vision, "output_hidden_size", c.output_hidden_size);
  c.hidden_act = blocks::parse_activation(vision.string_or("hidden_act", "quick_gelu"),
                                          vision.path() + ".hidden_act");
  const double epsilon = vision.number_or("layer_norm_eps", 1e-6);
  FOVEA_CHECK(epsilon > 0 && epsilon < 1, kCorruptData, vision.path(),
              ".layer_norm_eps: expected a number in (0, 1), got ", epsilon);
  c.layer_norm_eps = static_cast<float>(epsilon);
  c.enable_patch = vision.bool_or("enable_patch", c.enable_patch);
  require(vision, "image_size", kViews[kGlobal].side_px);
  require(vision, "patch_size", Config::kPatch);
  require(vision, "num_channels", 3);
  blocks::check_heads(vision, c.hidden_size, c.num_attention_heads);
}

}  // namespace

Config parse_config(const checkpoint::HfConfig& files) {
  const JsonView root = files.config.root();
  Config c;
  read_tower(root.at("vision_config"), c);
  require(root, "understand_projector_stride", 2);
  c.text_hidden_size = blocks::read_size(root, "hidden_size", c.text_hidden_size);
  if (const auto text = root.find("text_config")) {
    c.text_hidden_size = blocks::read_size(*text, "hidden_size", c.text_hidden_size);
    for (const char* const key : {"max_seq_len", "max_position_embeddings"}) {
      if (const auto most = text->find(key)) c.max_tokens = blocks::as_size(*most);
    }
  }
  return c;
}

}  // namespace fovea::step3_vl
