// config.json of Nemotron Omni, whose tower is C-RADIO.
#include "models/nemotron_h_omni/config.h"

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <string_view>

#include "core/check.h"
#include "models/common/config_reader.h"
#include "models/common/processor_file.h"

namespace fovea::nemotron_h_omni {

namespace {

constexpr std::int64_t kMaxClassRows = 1024;

/// A tower by the name that the training program has for it.
struct NamedTower {
  std::string_view name;
  std::int64_t width, depth, heads;
};

constexpr std::array kTowers{NamedTower{"vit_small_patch16_224", 384, 12, 6},
                             NamedTower{"vit_base_patch16_224", 768, 12, 12},
                             NamedTower{"vit_large_patch16_224", 1024, 24, 16},
                             NamedTower{"vit_huge_patch16_224", 1280, 32, 16}};

void refuse_if_set(const JsonView& object, const char* key) {
  const auto value = object.find(key);
  FOVEA_CHECK(!value, kUnsupported, value->path(), ": only null is supported, got ",
              value->summary());
}

/// Class tokens, one for each model that the tower learned from, and registers that fill them up.
void read_class_rows(const JsonView& args, Config& c) {
  std::set<std::string> teachers;
  const auto list = args.find("teachers");
  if (list && args.bool_or("cls_token_per_teacher", false)) {
    for (const JsonView& teacher : list->elements())
      teachers.insert(teacher.at("name").as_string());
  }
  c.num_cls_tokens = teachers.empty() ? 1 : std::ssize(teachers);
  FOVEA_CHECK(c.num_cls_tokens <= kMaxClassRows, kCorruptData, args.path(),
              ".teachers: ", c.num_cls_tokens, " is above ", kMaxClassRows);
  const std::int64_t multiple = common::read_count(args, "register_multiple", 0, kMaxClassRows);
  c.num_registers = multiple > 0 ? multiple - c.num_cls_tokens % multiple : 0;
  common::require_number(args, "cpe_num_registers", static_cast<double>(c.num_registers));
}

/// vision_config of the checkpoints.
void read_args(const JsonView& vision, const JsonView& args, Config& c) {
  const std::string name = args.at("model").as_string();
  const NamedTower* const tower = std::ranges::find(kTowers, name, &NamedTower::name);
  FOVEA_CHECK(tower != kTowers.end(), kUnsupported, args.path(),
              ".model: expected vit_small_patch16_224, vit_base_patch16_224, "
              "vit_large_patch16_224 or vit_huge_patch16_224, got ",
              name);
  c.hidden_size = tower->width;
  c.num_hidden_layers = tower->depth;
  c.num_attention_heads = tower->heads;
  c.intermediate_size = 4 * tower->width;
  for (const char* key :
       {"vitdet_window_size", "feature_normalizer_config", "inter_feature_normalizer_config"}) {
    refuse_if_set(vision, key);
  }
  common::require_flag(args, "model_norm", false);
  common::require_flag(vision, "separate_video_embedder", true);
  c.max_img_size = common::read_size(args, "cpe_max_size", c.max_img_size);
  read_class_rows(args, c);
}

/// vision_config of transformers.
void read_vision(const JsonView& vision, Config& c) {
  common::read_transformer(vision, c);
  const double ratio = common::read_positive(vision, "mlp_ratio", 4.0);
  const double wide = static_cast<double>(c.hidden_size) * ratio;
  FOVEA_CHECK(wide >= 1 && wide <= static_cast<double>(common::kMaxSize), kCorruptData,
              vision.path(), ".mlp_ratio: ", ratio, " times ", c.hidden_size, " is not in [1, ",
              common::kMaxSize, "]");
  c.intermediate_size = static_cast<std::int64_t>(wide);
  c.max_img_size = common::read_size(vision, "max_img_size", c.max_img_size);
  c.num_cls_tokens = common::read_size(vision, "num_cls_tokens", c.num_cls_tokens, kMaxClassRows);
  c.num_registers = common::read_count(vision, "num_registers", c.num_registers, kMaxClassRows);
  c.layer_norm_eps = common::read_positive(vision, "layer_norm_eps", c.layer_norm_eps);
  c.hidden_act = common::parse_activation(vision.string_or("hidden_act", "gelu"),
                                          vision.path() + ".hidden_act");
  c.qkv_bias = vision.bool_or("qkv_bias", c.qkv_bias);
  common::require_number(vision, "num_channels", 3);
  common::require_number(vision, "layerscale_value", 1.0);  // where scales are not stored
  common::require_flag(vision, "use_swiglu_ffn", false);
}

}  // namespace

Config parse_config(const checkpoint::HfConfig& files) {
  const JsonView root = files.config.root();
  const JsonView vision = root.at("vision_config");
  Config c;
  if (const auto args = vision.find("args")) {
    read_args(vision, *args, c);
  } else {
    read_vision(vision, c);
  }
  for (const JsonView& object : {root, vision}) {
    common::require_number(object, "video_temporal_patch_size", 2);
  }
  c.grid.patch_size = common::read_size(vision, "patch_size", c.grid.patch_size, 256);
  FOVEA_CHECK(c.position_side() >= 1, kCorruptData, vision.path(), ": a table of ", c.max_img_size,
              " pixels a side has no patch of ", c.grid.patch_size);
  common::require_number(root, "downsample_ratio", 0.5);
  common::require_text(root, "ps_version", "v2");
  if (const auto width = common::find_renamed(root, "vision_hidden_size", "vit_hidden_size")) {
    FOVEA_CHECK(width->as_int() == c.hidden_size, kCorruptData, width->path(), ": ",
                width->as_int(), " contradicts vision_config, which says ", c.hidden_size);
  }
  c.projector_hidden_size =
      common::read_size(root, "projector_hidden_size", c.projector_hidden_size);
  c.video_pruning_rate = root.number_or("video_pruning_rate", 0);
  const auto text = common::find_renamed(root, "text_config", "llm_config");
  FOVEA_CHECK(text, kCorruptData, root.path(), ": expected text_config or llm_config");
  c.text_hidden_size = common::as_size(text->at("hidden_size"));
  c.vision_final_layernorm = text->int_or("num_nextn_predict_layers", 0) > 0;
  return c;
}

}  // namespace fovea::nemotron_h_omni
