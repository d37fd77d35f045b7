// The tensors of the tower and the connector.
#include <span>
#include <vector>

#include "core/check.h"
#include "models/common/views/layers.h"
#include "models/idefics3/model.h"

namespace fovea::idefics3 {

namespace {

constexpr const char* kTower = "vision_model.";

/// Positions of the patches of a view, in the order of its rows.
Tensor load_positions(common::WeightLoader& loader, const Config& c) {
  const std::int64_t width = c.tower.hidden_size;
  const common::SquareView& view = c.tower.view;
  const auto take = [&](std::span<const float> table) {
    std::vector<float> taken;
    for (std::int64_t y = 0; y < view.grid(); ++y) {
      for (std::int64_t x = 0; x < view.grid(); ++x) {
        const std::int64_t entry = position_of(y, view.grid(), c.position_side) * c.position_side +
                                   position_of(x, view.grid(), c.position_side);
        const auto values =
            table.subspan(static_cast<std::size_t>(entry * width), static_cast<std::size_t>(width));
        taken.insert(taken.end(), values.begin(), values.end());
      }
    }
    return common::in_patch_order(view, 0, width, taken);
  };
  return loader.f32_from(cat(kTower, "embeddings.position_embedding.weight"),
                         {c.position_side * c.position_side, width}, {view.patches(), width}, take);
}

}  // namespace

Weights load_weights(common::WeightLoader& loader, const Config& c,
                     const media::NormalizeTable& normalize) {
  const std::int64_t patch = c.tower.view.patch_px;
  Weights w;
  w.tower.patch_embedding = {.normalize = loader.constant(normalize),
                             .proj = loader.linear(cat(kTower, "embeddings.patch_embedding"),
                                                   c.tower.hidden_size, {3, patch, patch})};
  w.tower.position_embedding = load_positions(loader, c);
  w.tower.blocks = common::load_siglip_blocks(loader, kTower, c.tower);
  w.post_layernorm = common::load_siglip_norm(loader, kTower, c.tower);
  w.modality_projection = loader.linear("connector.modality_projection.proj", c.text_hidden_size,
                                        {c.joined_width()}, common::WeightLoader::Bias::kNo);
  return w;
}

}  // namespace fovea::idefics3
