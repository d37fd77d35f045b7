// CLIP over square views.
#include "models/common/views/clip.h"

#include "core/check.h"
#include "models/common/config_reader.h"
#include "models/common/processor_file.h"
#include "models/common/views/layers.h"
#include "models/common/views/siglip.h"

namespace fovea::common {

ClipConfig read_clip(const JsonView& vision) {
  ClipConfig c;
  require_text(vision, "model_type", "clip_vision_model");
  read_transformer(vision, c);
  c.view = read_square_view(vision, c.view);
  c.layer_norm_eps = read_positive(vision, "layer_norm_eps", c.layer_norm_eps);
  c.hidden_act =
      parse_activation(vision.string_or("hidden_act", "quick_gelu"), vision.path() + ".hidden_act");
  return c;
}

std::vector<std::pair<std::string, std::string>> clip_facts(const ClipConfig& c) {
  return {{"depth", cat(c.num_hidden_layers)},
          {"width", cat(c.hidden_size)},
          {"MLP width", cat(c.intermediate_size)},
          {"heads", cat(c.num_attention_heads)},
          {"view", cat(c.view.side_px, "x", c.view.side_px, ", ", c.view.patches(), " patches")}};
}

ClipTower load_clip(WeightLoader& loader, const std::string& name, const ClipConfig& c,
                    std::int64_t num_layers, const media::NormalizeTable& normalize) {
  const std::int64_t width = c.hidden_size;
  const std::int64_t patch = c.view.patch_px;
  const std::string embeddings = name + "embeddings.";
  ClipTower tower{
      .patch_embedding = {.normalize = loader.constant(normalize),
                          .proj = loader.linear(embeddings + "patch_embedding", width,
                                                {3, patch, patch}, WeightLoader::Bias::kNo)},
      .class_embedding = loader.row(embeddings + "class_embedding", width),
      .position_embedding =
          loader.f32(embeddings + "position_embedding.weight", {1 + c.view.patches(), width}),
      .pre_layrnorm =
          loader.layer_norm(name + "pre_layrnorm", width, static_cast<float>(c.layer_norm_eps)),
      .blocks = {}};
  // The blocks are those of SigLIP, under the same names.
  tower.blocks = load_siglip_blocks(loader, name,
                                    {.hidden_size = width,
                                     .num_hidden_layers = num_layers,
                                     .num_attention_heads = c.num_attention_heads,
                                     .intermediate_size = c.intermediate_size,
                                     .layer_norm_eps = c.layer_norm_eps,
                                     .hidden_act = c.hidden_act});
  return tower;
}

LayerNorm load_clip_norm(WeightLoader& loader, const std::string& name, const ClipConfig& c) {
  return loader.layer_norm(name + "post_layernorm", c.hidden_size,
                           static_cast<float>(c.layer_norm_eps));
}

void clip(ExecContext& ctx, const ClipTower& tower, const ViewBatch& in, TensorView x) {
  // x = LN([class embedding; conv(normalise(pixels))] + positions)
  embed_views(ctx, in, tower.patch_embedding, tower.class_embedding, tower.position_embedding, x);
  norm(ctx, tower.pre_layrnorm, x, in.rows, x);
  // x = x + attention(LN(x)); x = x + mlp(LN(x))
  add_blocks(ctx, tower.blocks, attended_rows(in), x);
}

}  // namespace fovea::common
