// config.json of DeepSeek-OCR 2, of the vendor and of transformers.
#include "models/deepseek_ocr2/config.h"

#include "core/check.h"
#include "models/common/config_reader.h"
#include "models/common/processor_file.h"

namespace fovea::deepseek_ocr2 {

namespace {

constexpr const char* kMaxPositions = "max_position_embeddings";

/// Source: transformers 5.24, deepseek_ocr2/configuration_deepseek_ocr2.py.
constexpr Decoder kClassDecoder{.hidden_size = 4096,
                                .num_hidden_layers = 32,
                                .num_attention_heads = 32,
                                .num_key_value_heads = 32,
                                .intermediate_size = 22016,
                                .rope_theta = 1e4};

ops::Activation read_activation(const JsonView& object, const char* fallback) {
  return common::parse_activation(object.string_or("hidden_act", fallback),
                                  object.path() + ".hidden_act");
}

/// The vendor's file names a second width of the convolutions that the tensors do not have.
Config parse_vendor(const JsonView& root) {
  Config c;
  common::require_text(root, "tile_tag", "2D");
  const JsonView width = root.at("vision_config").at("width");
  common::read_sam(width.at("sam_vit_b"), c.sam);
  c.decoder.hidden_size = common::read_size(width.at("qwen2-0-5b"), "dim", c.decoder.hidden_size);
  c.sam.downsample_channels[1] = c.decoder.hidden_size;
  const JsonView projector = root.at("projector_config");
  common::require_text(projector, "projector_type", "linear");
  common::require_number(projector, "input_dim", static_cast<double>(c.decoder.hidden_size));
  c.n_embed = common::read_size(projector, "n_embed", c.n_embed);
  c.max_position_embeddings = common::read_size(root, kMaxPositions, c.max_position_embeddings);
  if (const auto language = root.find("language_config")) {
    c.max_position_embeddings =
        common::read_size(*language, kMaxPositions, c.max_position_embeddings);
  }
  return c;
}

std::int64_t read_mlp_width(const JsonView& sam, std::int64_t width) {
  const double ratio = common::read_positive(sam, "mlp_ratio", 4.0);
  FOVEA_CHECK(ratio <= 64, kCorruptData, sam.path(), ".mlp_ratio: expected at most 64, got ",
              ratio);
  const auto wide = static_cast<std::int64_t>(static_cast<double>(width) * ratio);
  const auto given = sam.find("mlp_dim");
  if (given && !given->is_null()) return common::as_size(*given);
  FOVEA_CHECK(wide >= 1, kCorruptData, sam.path(), ".mlp_ratio: ", ratio, " of ", width,
              " leaves no MLP");
  return wide;
}

common::SamConfig read_sam_config(const JsonView& sam) {
  common::SamConfig c{.downsample_channels = {512, 896}};
  common::require_number(sam, "num_channels", 3);
  common::require_number(sam, "patch_size", kPatch);
  for (const char* key : {"qkv_bias", "use_abs_pos", "use_rel_pos"}) {
    common::require_flag(sam, key, true);
  }
  c.width = common::read_size(sam, "hidden_size", c.width);
  c.heads = common::read_size(sam, "num_attention_heads", c.heads);
  c.layers = common::read_size(sam, "num_hidden_layers", c.layers, common::kMaxDepth);
  c.mlp_width = read_mlp_width(sam, c.width);
  c.neck_channels = common::read_size(sam, "output_channels", c.neck_channels);
  c.window = common::read_size(sam, "window_size", c.window);
  c.grid = common::read_size(sam, "image_size", c.grid * kPatch) / kPatch;
  FOVEA_CHECK(c.grid >= 1, kCorruptData, sam.path(), ".image_size: expected at least ", kPatch,
              " pixels");
  c.layer_norm_eps = common::read_positive(sam, "layer_norm_eps", c.layer_norm_eps);
  c.hidden_act = read_activation(sam, "gelu");
  if (const auto list = sam.find("global_attn_indexes")) {
    c.global_attn_indexes = common::read_block_indexes(*list, c.layers);
  }
  const auto list = sam.find("downsample_channels");
  if (list && !list->is_null()) {
    const std::vector<JsonView> channels = common::elements_of(*list, 2);
    for (std::size_t i = 0; i < 2; ++i) c.downsample_channels[i] = common::as_size(channels[i]);
  }
  common::check_heads(sam, c.width, c.heads);
  return c;
}

/// Attention covers all that the mask of the queries lets it see.
void check_full_attention(const JsonView& encoder) {
  common::require_flag(encoder, "use_sliding_window", false);
  const auto types = encoder.find("layer_types");
  if (!types || types->is_null()) return;
  for (const JsonView& type : types->elements()) {
    FOVEA_CHECK(type.as_string() == "full_attention", kUnsupported, type.path(),
                ": only full_attention is supported, got ", type.as_string());
  }
}

Decoder read_decoder(const JsonView& encoder) {
  Decoder d = kClassDecoder;
  common::read_transformer(encoder, d);
  common::require_number(encoder, "head_dim", static_cast<double>(d.head_dim()));
  const auto shared = encoder.find("num_key_value_heads");
  const bool is_given = shared && !shared->is_null();
  d.num_key_value_heads = is_given ? common::as_size(*shared) : d.num_attention_heads;
  d.rms_norm_eps = common::read_positive(encoder, "rms_norm_eps", d.rms_norm_eps);
  if (const auto rope = encoder.find("rope_parameters")) {
    common::require_text(*rope, "rope_type", "default");
  }
  d.rope_theta = common::read_rope_theta(encoder, d.rope_theta);
  d.hidden_act = read_activation(encoder, "silu");
  check_full_attention(encoder);
  return d;
}

Config parse_transformers(const JsonView& root) {
  const JsonView vision = root.at("vision_config");
  const JsonView text = root.at("text_config");
  Config c{.format = Format::kTransformers};
  c.sam = read_sam_config(vision.at("sam_config"));
  c.decoder = read_decoder(vision.at("encoder_config"));
  c.n_embed = common::as_size(text.at("hidden_size"));
  constexpr std::int64_t kClassPositions = 2048;
  c.max_position_embeddings = common::read_size(text, kMaxPositions, kClassPositions);
  return c;
}

void check_consistent(const JsonView& root, const Config& c) {
  const Decoder& d = c.decoder;
  common::check_heads(root, d.hidden_size, d.num_attention_heads);
  FOVEA_CHECK(d.num_attention_heads % d.num_key_value_heads == 0, kCorruptData, root.path(), ": ",
              d.num_key_value_heads, " heads of keys do not divide ", d.num_attention_heads,
              " heads of queries");
  FOVEA_CHECK(c.sam.feature_width() == d.hidden_size, kCorruptData, root.path(),
              ": SAM features have ", c.sam.feature_width(), " channels, the decoder takes ",
              d.hidden_size);
}

}  // namespace

Config parse_config(const checkpoint::HfConfig& files) {
  const JsonView root = files.config.root();
  const bool is_vendor = root.at("vision_config").find("width").has_value();
  Config c = is_vendor ? parse_vendor(root) : parse_transformers(root);
  check_consistent(root, c);
  return c;
}

}  // namespace fovea::deepseek_ocr2
