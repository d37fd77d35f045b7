// The tensors of the tower. What a forward would have to do to every row is done to them: layer
// scales are multiplied into the layers before them, positions take the order of the patches.
#include "models/internvl/model.h"

#include "core/check.h"
#include "models/common/views/layers.h"

namespace fovea::internvl {

namespace {

using Bias = common::WeightLoader::Bias;

constexpr float kProjectorEpsilon = 1e-5f;  // fixed in the reference, not in config.json
constexpr float kQkNormEpsilon = 1e-6f;     // of the native format; the other's published value

/// The names of the same tensors in both formats, without ".weight" and ".bias" where a layer has
/// both.
struct Names {
  std::string class_embedding, position_embedding, patch_embedding;
  std::string layers;            ///< then the index, a dot and the following names
  std::vector<std::string> qkv;  ///< one fused layer, or three
  std::string attention, proj, norm1, norm2, ls1, ls2;
  std::string projector_norm, projector_fc1, projector_fc2;
};

Names names_of(Format format) {
  if (format != Format::kNative) {
    return {.class_embedding = "vision_model.embeddings.class_embedding",
            .position_embedding = "vision_model.embeddings.position_embedding",
            .patch_embedding = "vision_model.embeddings.patch_embedding",
            .layers = "vision_model.encoder.layers.",
            .qkv = {"attn.qkv"},
            .attention = "attn",
            .proj = "attn.proj",
            .norm1 = "norm1",
            .norm2 = "norm2",
            .ls1 = "ls1",
            .ls2 = "ls2",
            .projector_norm = "mlp1.0",
            .projector_fc1 = "mlp1.1",
            .projector_fc2 = "mlp1.3"};
  }
  return {.class_embedding = "vision_tower.embeddings.cls_token",
          .position_embedding = "vision_tower.embeddings.position_embeddings",
          .patch_embedding = "vision_tower.embeddings.patch_embeddings.projection",
          .layers = "vision_tower.encoder.layer.",
          .qkv = {"attention.q_proj", "attention.k_proj", "attention.v_proj"},
          .attention = "attention",
          .proj = "attention.projection_layer",
          .norm1 = "layernorm_before",
          .norm2 = "layernorm_after",
          .ls1 = "lambda_1",
          .ls2 = "lambda_2",
          .projector_norm = "multi_modal_projector.layer_norm",
          .projector_fc1 = "multi_modal_projector.linear_1",
          .projector_fc2 = "multi_modal_projector.linear_2"};
}

/// Names and sizes of one tower, and where its tensors come from.
struct Loading {
  common::WeightLoader& loader;
  const Config& c;
  const Names& names;

  [[nodiscard]] Norm norm(const std::string& name) const {
    const auto epsilon = static_cast<float>(c.layer_norm_eps);
    if (c.rms_norm) return {loader.rms_norm(name, c.hidden_size, epsilon)};
    return {loader.layer_norm(name, c.hidden_size, epsilon)};
  }

  [[nodiscard]] Attention attention(const std::string& layer) const {
    std::vector<std::string> qkv;
    for (const std::string& part : names.qkv) qkv.push_back(layer + part);
    const std::int64_t part_rows = 3 * c.hidden_size / std::ssize(qkv);
    Attention attention{
        .plain = {.qkv = loader.fused(qkv, part_rows, {c.hidden_size},
                                      c.qkv_bias ? Bias::kYes : Bias::kNo),
                  .proj = loader.scaled_linear(layer + names.proj, layer + names.ls1, c.hidden_size,
                                               c.hidden_size),
                  .num_heads = c.num_attention_heads},
        .qk_norms = {}};
    if (c.qk_normalization) {
      const std::string norms = layer + names.attention;
      attention.qk_norms = {loader.rms_norm(norms + ".q_norm", c.hidden_size, kQkNormEpsilon),
                            loader.rms_norm(norms + ".k_norm", c.hidden_size, kQkNormEpsilon)};
    }
    return attention;
  }

  [[nodiscard]] Layer layer(const std::string& name) const {
    return {.norm1 = norm(name + names.norm1),
            .norm2 = norm(name + names.norm2),
            .attn = attention(name),
            .mlp = {.fc1 = loader.linear(name + "mlp.fc1", c.intermediate_size, {c.hidden_size}),
                    .fc2 = loader.scaled_linear(name + "mlp.fc2", name + names.ls2, c.hidden_size,
                                                c.intermediate_size),
                    .activation = c.hidden_act}};
  }
};

}  // namespace

Weights load_weights(common::WeightLoader& loader, const Config& c,
                     const media::NormalizeTable& normalize) {
  const Names names = names_of(c.format);
  const std::int64_t width = c.hidden_size;
  Weights w;
  w.patch_embedding = {
      .normalize = loader.constant(normalize),
      .proj = loader.linear(names.patch_embedding, width, {3, c.view.patch_px, c.view.patch_px})};
  w.class_embedding = loader.f32(names.class_embedding, {1, 1, width}, {1, width});
  const std::int64_t rows = 1 + c.view.patches();
  w.position_embedding = loader.f32_from(names.position_embedding, {1, rows, width}, {rows, width},
                                         [&](std::span<const float> table) {
                                           return common::in_patch_order(c.view, 1, width, table);
                                         });
  const Loading loading{loader, c, names};
  for (std::int64_t i = 0; i < c.num_hidden_layers; ++i) {
    const auto block = loader.block({.index = i, .count = c.num_hidden_layers});
    w.layers.push_back(loading.layer(cat(names.layers, i, ".")));
  }
  w.projector_norm = loader.layer_norm(names.projector_norm, c.joined_width(), kProjectorEpsilon);
  w.projector = {.fc1 = loader.linear(names.projector_fc1, c.llm_hidden_size, {c.joined_width()}),
                 .fc2 = loader.linear(names.projector_fc2, c.llm_hidden_size, {c.llm_hidden_size}),
                 .activation = c.projector_act};
  return w;
}

}  // namespace fovea::internvl
