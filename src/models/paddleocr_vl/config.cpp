// config.json of PaddleOCR-VL.
#include "models/paddleocr_vl/config.h"

#include "core/check.h"
#include "models/common/config_reader.h"
#include "models/common/processor_file.h"

namespace fovea::paddleocr_vl {

Config parse_config(const checkpoint::HfConfig& files) {
  constexpr std::int64_t kMaxSide = 4096;
  const JsonView root = files.config.root();
  const JsonView vision = root.at("vision_config");
  Config c;
  common::require_number(vision, "num_channels", 3);
  common::read_transformer(vision, c);
  common::GridGeometry& g = c.grid;
  g.patch_size = common::read_size(vision, "patch_size", g.patch_size, kMaxSide);
  g.spatial_merge_size =
      common::read_size(vision, "spatial_merge_size", g.spatial_merge_size, kMaxSide);
  c.image_size = common::read_size(vision, "image_size", c.image_size);
  FOVEA_CHECK(c.position_side() >= 1, kCorruptData, vision.path(), ".image_size: ", c.image_size,
              " pixels hold no patch of ", g.patch_size);
  c.layer_norm_eps = common::read_positive(vision, "layer_norm_eps", c.layer_norm_eps);
  c.rope_theta = common::read_rope_theta(vision, c.rope_theta);
  c.hidden_act = common::parse_activation(vision.string_or("hidden_act", "gelu_pytorch_tanh"),
                                          vision.path() + ".hidden_act");
  // Releases of transformers after 5.24 can interpolate positions in other ways.
  common::require_text(vision, "interpolation_mode", "bilinear");
  common::require_flag(vision, "interpolation_align_corners", false);
  const auto text = root.find("text_config");
  c.text_hidden_size = common::as_size((text ? *text : root).at("hidden_size"));
  return c;
}

}  // namespace fovea::paddleocr_vl
