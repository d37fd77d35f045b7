// config.json of Step-3.7 and Step3-VL-10B.
#include "models/step3p7/config.h"

#include <string>
#include <string_view>

#include "core/check.h"
#include "models/common/config_reader.h"
#include "models/common/processor_file.h"

namespace fovea::step3p7 {

namespace {

/// A size under the name of published files, or under that which transformers writes.
std::int64_t size_of_either(const JsonView& object, std::string_view published,
                            std::string_view written, std::int64_t fallback, std::int64_t most) {
  return common::read_size(object, published, common::read_size(object, written, fallback, most),
                           most);
}

/// Requires the parts that the tower has, and none that it lacks.
void check_parts(const JsonView& root, const JsonView& vision) {
  common::require_flag(vision, "use_cls_token", false);
  common::require_flag(vision, "use_ln_pre", true);
  common::require_flag(vision, "use_ln_post", false);
  common::require_flag(vision, "use_abs_posemb", true);
  common::require_flag(vision, "use_rope2d", true);
  common::require_number(vision, "num_channels", 3);
  common::require_number(vision, "rope_theta_rescale_factor", 1);
  common::require_number(root, "understand_projector_stride", 2);
  FOVEA_CHECK(!vision.find("output_dim"), kUnsupported, vision.path(),
              ".output_dim: only null is supported");
}

void read_mlp(const JsonView& vision, Config& c) {
  c.mlp_ratio = vision.number_or("mlp_ratio", c.mlp_ratio);
  FOVEA_CHECK(c.mlp_ratio > 0 && c.mlp_ratio <= 64 && c.mlp_width() >= 1, kCorruptData,
              vision.path(), ".mlp_ratio: expected a number in (0, 64], got ", c.mlp_ratio);
  c.hidden_act = common::parse_activation(vision.string_or("hidden_act", "quick_gelu"),
                                          vision.path() + ".hidden_act");
}

bool has_layer_scales(const JsonView& vision) {
  if (vision.find("ls_init_value") || vision.find("layer_scale_init_value")) return true;
  for (const std::string_view key : vision.keys()) {
    if (key == "ls_init_value") return false;  // null
  }
  return true;
}

}  // namespace

void check_view(const common::SquareView& view, const std::string& path) {
  const std::int64_t token_px = view.patch_px * view.stride;
  FOVEA_CHECK(view.side_px % token_px == 0, kUnsupported, path, ": ", view.side_px,
              " is not a multiple of ", token_px, ", the pixels a side of a token");
}

Config parse_config(const checkpoint::HfConfig& files) {
  const JsonView root = files.config.root();
  const JsonView vision = root.at("vision_config");
  check_parts(root, vision);
  Config c;
  c.width = size_of_either(vision, "width", "hidden_size", c.width, common::kMaxSize);
  c.layers = size_of_either(vision, "layers", "num_hidden_layers", c.layers, common::kMaxDepth);
  c.heads = size_of_either(vision, "heads", "num_attention_heads", c.heads, common::kMaxSize);
  common::check_heads(vision, c.width, c.heads);
  read_mlp(vision, c);
  c.layer_norm_eps = common::read_positive(vision, "layer_norm_eps", c.layer_norm_eps);
  c.rope_theta = common::read_rope_theta(vision, c.rope_theta);
  c.has_layer_scales = has_layer_scales(vision);
  c.view = common::read_square_view(vision, c.view);
  check_view(c.view, vision.path() + ".image_size");
  c.projector_bias = root.bool_or("projector_bias", c.projector_bias);
  c.text_hidden_size = common::read_size(root, "hidden_size", c.text_hidden_size);
  if (const auto text = root.find("text_config")) {
    c.text_hidden_size = common::read_size(*text, "hidden_size", c.text_hidden_size);
  }
  return c;
}

}  // namespace fovea::step3p7
