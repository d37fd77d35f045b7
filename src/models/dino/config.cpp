// config.json of DINOv2 and DINOv3.
#include "models/dino/config.h"

#include "core/check.h"
#include "models/common/config_reader.h"
#include "models/common/processor_file.h"
#include "models/registry.h"

namespace fovea::dino {

namespace {

constexpr std::int64_t kMostRegisters = 256;

/// Wide side of the MLP of DINOv2: two thirds of it in whole vectors of 8 where it is gated.
std::int64_t wide_of(const JsonView& root, const Config& c) {
  constexpr double kMostRatio = 64;
  const double ratio = common::read_positive(root, "mlp_ratio", 4);
  FOVEA_CHECK(ratio <= kMostRatio, kCorruptData, root.path(), ".mlp_ratio: expected at most ",
              kMostRatio, ", got ", ratio);
  const auto wide = static_cast<std::int64_t>(static_cast<double>(c.hidden_size) * ratio);
  FOVEA_CHECK(wide > 0, kCorruptData, root.path(), ".mlp_ratio: ", ratio, " leaves no MLP");
  if (!c.gated_mlp) return wide;
  const auto part = static_cast<std::int64_t>(static_cast<double>(wide * 2) / 3);
  return (part + 7) / 8 * 8;
}

void read_v2(const JsonView& root, bool has_registers, Config& c) {
  common::require_flag(root, "qkv_bias", true);
  c.gated_mlp = root.bool_or("use_swiglu_ffn", false);
  c.intermediate_size = wide_of(root, c);
  if (c.gated_mlp) c.hidden_act = ops::Activation::kSilu;  // whatever the file says
  if (!has_registers) return;
  c.num_register_tokens = common::read_count(root, "num_register_tokens", 4, kMostRegisters);
  c.position_filter = common::BicubicTable::kAntialiased;
}

void read_v3(const JsonView& root, Config& c) {
  for (const char* bias : {"query_bias", "value_bias", "proj_bias", "mlp_bias"}) {
    common::require_flag(root, bias, true);
  }
  c.key_bias = root.bool_or("key_bias", false);
  c.intermediate_size = common::read_size(root, "intermediate_size", 1536);
  c.gated_mlp = root.bool_or("use_gated_mlp", false);
  c.num_register_tokens = common::read_count(root, "num_register_tokens", 0, kMostRegisters);
  c.rope_theta = common::read_positive(root, "rope_theta", c.rope_theta);
}

}  // namespace

Config parse_config(const checkpoint::HfConfig& files, Version version) {
  const JsonView root = files.config.root();
  const bool is_v3 = version == Version::kV3;
  const bool has_registers = known_architecture(files) == "Dinov2WithRegistersModel";
  Config c{.version = version,
           .hidden_size = is_v3 ? 384 : 768,
           .num_attention_heads = is_v3 ? 6 : 12,
           .trained = {.side_px = 224, .patch_px = is_v3 || has_registers ? 16 : 14},
           .layer_norm_eps = is_v3 ? 1e-5 : 1e-6};
  c.hidden_size = common::read_size(root, "hidden_size", c.hidden_size);
  c.num_hidden_layers =
      common::read_size(root, "num_hidden_layers", c.num_hidden_layers, common::kMaxDepth);
  c.num_attention_heads = common::read_size(root, "num_attention_heads", c.num_attention_heads);
  common::check_heads(root, c.hidden_size, c.num_attention_heads);
  c.trained = common::read_square_view(root, c.trained);
  c.layer_norm_eps = common::read_positive(root, "layer_norm_eps", c.layer_norm_eps);
  c.hidden_act =
      common::parse_activation(root.string_or("hidden_act", "gelu"), root.path() + ".hidden_act");
  is_v3 ? read_v3(root, c) : read_v2(root, has_registers, c);
  FOVEA_CHECK(c.intermediate_size % 8 == 0, kUnsupported, root.path(), ": an MLP of width ",
              c.intermediate_size, ", which is not a multiple of 8");
  return c;
}

}  // namespace fovea::dino
