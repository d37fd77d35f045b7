// The tensors of all towers.
#include <cmath>
#include <string>
#include <vector>

#include "core/check.h"
#include "models/deepseek_ocr2/model.h"

namespace fovea::deepseek_ocr2 {

namespace {

using Bias = common::WeightLoader::Bias;

/// theta^(-2 j / head_dim), of positions in one dimension; in f32, as the reference computes them.
Tensor load_frequencies(common::WeightLoader& loader, const Decoder& d) {
  std::vector<float> values;
  for (std::int64_t j = 0; j < d.head_dim(); j += 2) {
    const float exponent = static_cast<float>(j) / static_cast<float>(d.head_dim());
    values.push_back(1.0f / std::pow(static_cast<float>(d.rope_theta), exponent));
  }
  return loader.constant(values, {std::ssize(values)});
}

common::GatedBlock load_layer(common::WeightLoader& loader, const Decoder& d,
                              const std::string& name) {
  const std::int64_t width = d.hidden_size;
  const auto epsilon = static_cast<float>(d.rms_norm_eps);
  return {.norm1 = loader.rms_norm(name + ".input_layernorm", width, epsilon),
          .norm2 = loader.rms_norm(name + ".post_attention_layernorm", width, epsilon),
          .attn = {.qkv = loader.grouped_qkv_of_three(name + ".self_attn", width,
                                                      d.num_attention_heads, d.num_key_value_heads),
                   .proj = loader.linear(name + ".self_attn.o_proj", width, {width}, Bias::kNo),
                   .num_heads = d.num_attention_heads},
          .mlp = loader.gated(name + ".mlp", width, d.intermediate_size, d.hidden_act, Bias::kNo)};
}

/// The queries of a view, of which there are as many as it has tokens.
Tensor load_queries(common::WeightLoader& loader, const common::SquareView& view,
                    std::int64_t width) {
  return loader.f32(cat("qwen2_model.query_", view.side_px, ".weight"), {view.tokens(), width});
}

}  // namespace

Weights load_weights(common::WeightLoader& loader, const Config& c, const Views& views,
                     const media::NormalizeTable& normalize) {
  const std::string decoder = "qwen2_model.model.model.";
  const std::int64_t width = c.decoder.hidden_size;
  Weights w;
  w.sam = common::load_sam(loader, c.sam, views, normalize);
  w.inv_freq = load_frequencies(loader, c.decoder);
  for (std::size_t path = 0; path < kNumPaths; ++path) {
    w.queries[path] = load_queries(loader, views[path], width);
  }
  for (std::int64_t i = 0; i < c.decoder.num_hidden_layers; ++i) {
    const auto block = loader.block(
        {.index = i, .count = c.decoder.num_hidden_layers, .native_of_nine = kGatedNativeOfNine});
    w.layers.push_back(load_layer(loader, c.decoder, cat(decoder, "layers.", i)));
  }
  w.norm = loader.rms_norm(decoder + "norm", width, static_cast<float>(c.decoder.rms_norm_eps));
  w.projector = loader.linear("projector.layers", c.n_embed, {width});
  w.view_seperator = loader.row("view_seperator", c.n_embed);
  return w;
}

}  // namespace fovea::deepseek_ocr2
