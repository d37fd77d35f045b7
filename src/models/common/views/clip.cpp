// CLIP's vision transformer over square views.
#include "models/common/views/clip.h"

#include <algorithm>

#include "models/common/config_reader.h"
#include "models/common/views/layers.h"

namespace fovea::common {

ClipConfig read_clip(const JsonView& vision) {
  require_text(vision, "model_type", "clip_vision_model");
  ClipConfig c = read_siglip_layers(
      vision, {.layer_norm_eps = 1e-5, .hidden_act = ops::Activation::kQuickGelu});
  c.view = read_square_view(vision, {.side_px = 224, .patch_px = 32});
  return c;
}

ClipTower load_clip(WeightLoader& loader, const std::string& name, const ClipConfig& c,
                    const media::NormalizeTable& normalize) {
  const std::int64_t width = c.hidden_size;
  const std::int64_t patch = c.view.patch_px;
  const Shape positions{1 + c.view.patches(), width};
  ClipTower tower{
      .patch_embedding = {.normalize = loader.constant(normalize),
                          .proj = loader.linear(name + "embeddings.patch_embedding", width,
                                                {3, patch, patch}, WeightLoader::Bias::kNo)},
      .class_embedding = loader.row(name + "embeddings.class_embedding", width),
      .position_embedding = loader.f32_from(
          name + "embeddings.position_embedding.weight", positions, positions,
          [&](std::span<const float> table) { return in_patch_order(c.view, 1, width, table); }),
      .pre_layrnorm =
          loader.layer_norm(name + "pre_layrnorm", width, static_cast<float>(c.layer_norm_eps)),
      .blocks = {}};
  tower.blocks = load_siglip_blocks(loader, name, c);
  return tower;
}

ViewLayout clip_layout(const ClipConfig& c) {
  ViewLayout layout = siglip_layout(c);
  layout.sequence = {.patches = c.view.patches()};
  return layout;
}

void clip(ExecContext& ctx, const ClipTower& tower, const ViewBatch& in, TensorView x) {
  // x = LN([class row; conv(normalise(pixels))] + positions)
  embed_views(ctx, in, tower.patch_embedding, tower.class_embedding, tower.position_embedding, x);
  norm(ctx, tower.pre_layrnorm, x, in.rows, x);
  // x = x + attention(LN(x)); x = x + mlp(LN(x))
  add_blocks(ctx, tower.blocks, attended_rows(in), x);
}

void clip(ExecContext& ctx, const ClipTower& tower, const ViewInputs& in, TensorView x) {
  for (const ViewBatch& chunk : in.chunks) {
    const std::int64_t rows = chunk.sequence.rows();
    clip(ctx, tower, chunk, row_range(x, chunk.first * rows, chunk.count * rows));
  }
}

}  // namespace fovea::common
