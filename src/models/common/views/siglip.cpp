// SigLIP over square views.
#include "models/common/views/siglip.h"

#include <algorithm>

#include "core/check.h"
#include "fovea/tower/ops/rows.h"
#include "models/common/blocks.h"
#include "models/common/config_reader.h"
#include "models/common/processor_file.h"
#include "models/common/views/layers.h"

namespace fovea::common {

namespace {

constexpr std::int64_t kChunkRows = 16384;  // 4 views of the largest published grid, 64 x 64

const BlockNames kBlockNames{.norm1 = "layer_norm1",
                             .norm2 = "layer_norm2",
                             .qkv = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"},
                             .proj = "self_attn.out_proj",
                             .fc1 = "mlp.fc1",
                             .fc2 = "mlp.fc2"};

}  // namespace

SiglipConfig read_siglip(const JsonView& vision) {
  require_text(vision, "model_type", "siglip_vision_model");
  SiglipConfig c = read_siglip_layers(vision, {});
  c.view = read_square_view(vision, c.view);
  return c;
}

SiglipConfig read_siglip_layers(const JsonView& vision, SiglipConfig c) {
  read_transformer(vision, c);
  c.layer_norm_eps = read_positive(vision, "layer_norm_eps", c.layer_norm_eps);
  if (const auto name = vision.find("hidden_act")) {
    c.hidden_act = parse_activation(name->as_string(), name->path());
  }
  return c;
}

Facts siglip_facts(const SiglipConfig& c, const Facts& more) {
  Facts facts{{"depth", cat(c.num_hidden_layers)},
              {"width", cat(c.hidden_size)},
              {"MLP width", cat(c.intermediate_size)},
              {"heads", cat(c.num_attention_heads)},
              {"view", cat(c.view.side_px, "x", c.view.side_px, ", ", c.view.tokens(), " tokens")}};
  facts.insert(facts.end(), more.begin(), more.end());
  return facts;
}

SiglipTower load_siglip(WeightLoader& loader, const std::string& name, const SiglipConfig& c,
                        const media::NormalizeTable& normalize) {
  const std::int64_t width = c.hidden_size;
  const std::int64_t patch = c.view.patch_px;
  const Shape positions{c.view.patches(), width};
  SiglipTower tower{
      .patch_embedding = {.normalize = loader.constant(normalize),
                          .proj = loader.linear(name + "embeddings.patch_embedding", width,
                                                {3, patch, patch})},
      .position_embedding = loader.f32_from(
          name + "embeddings.position_embedding.weight", positions, positions,
          [&](std::span<const float> table) { return in_patch_order(c.view, 0, width, table); }),
      .blocks = {}};
  tower.blocks = load_siglip_blocks(loader, name, c);
  return tower;
}

BlockSequence load_siglip_blocks(WeightLoader& loader, const std::string& name,
                                 const SiglipConfig& c) {
  return load_siglip_blocks(loader, name, c, 0, c.num_hidden_layers);
}

BlockSequence load_siglip_blocks(WeightLoader& loader, const std::string& name,
                                 const SiglipConfig& c, std::int64_t first, std::int64_t count) {
  return load_blocks(loader, name + "encoder.layers.", kBlockNames, block_shape(c), count, first);
}

Attention load_siglip_attention(WeightLoader& loader, const std::string& name,
                                const SiglipConfig& c) {
  return load_attention(loader, name, kBlockNames, block_shape(c));
}

LayerNorm load_siglip_norm(WeightLoader& loader, const std::string& name, const SiglipConfig& c) {
  return loader.layer_norm(name + "post_layernorm", c.hidden_size,
                           static_cast<float>(c.layer_norm_eps));
}

ViewLayout siglip_layout(const SiglipConfig& c) {
  return {.view = c.view,
          .sequence = {.patches = c.view.patches(), .class_rows = 0, .first_patch = 0},
          .tokens = c.view.tokens(),
          .stages = {c.view.tokens()},
          .views_per_chunk = std::max<std::int64_t>(1, kChunkRows / c.view.patches()),
          .chunk_stages = {}};
}

void siglip(ExecContext& ctx, const SiglipTower& tower, const ViewInputs& in, TensorView x) {
  for (const ViewBatch& chunk : in.chunks) {
    const std::int64_t patches = chunk.sequence.patches;
    const TensorView rows = row_range(x, chunk.first * patches, chunk.count * patches);
    // x = conv(normalise(pixels)) + positions
    embed_patches(ctx, chunk, tower.patch_embedding, rows);
    ops::add_table(ctx,
                   {.table = tower.position_embedding.view(), .rows = chunk.patches, .x = rows});
    // x = x + attention(LN(x)); x = x + mlp(LN(x))
    add_blocks(ctx, tower.blocks, attended_rows(chunk), rows);
  }
}

}  // namespace fovea::common
