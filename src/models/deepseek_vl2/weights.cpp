// The tensors of the tower, under timm's names.
#include <string>
#include <utility>
#include <vector>

#include "core/check.h"
#include "models/common/blocks.h"
#include "models/deepseek_vl2/model.h"

namespace fovea::deepseek_vl2 {

namespace {

common::SiglipTower load_tower(common::WeightLoader& loader, const common::SiglipConfig& c,
                               const media::NormalizeTable& normalize) {
  const std::int64_t width = c.hidden_size;
  const std::int64_t patch = c.view.patch_px;
  common::SiglipTower tower;
  tower.patch_embedding = {
      .normalize = loader.constant(normalize),
      .proj = loader.linear("vision.patch_embed.proj", width, {3, patch, patch})};
  tower.position_embedding =
      loader.f32("vision.pos_embed", {1, c.view.patches(), width}, {c.view.patches(), width});
  tower.blocks = common::load_blocks(loader, "vision.blocks.", {}, common::block_shape(c),
                                     c.num_hidden_layers);
  return tower;
}

/// The layer over 2 x 2 patches, stored channel by channel, as one over 3 x 3 patches, tap by tap:
/// those above and on the left of the 2 x 2 count for nothing.
ops::PackedLinear load_joining_layer(common::WeightLoader& loader, const Config& c) {
  const std::int64_t width = c.tower.hidden_size;
  const auto spread = [&](std::vector<float>& weight, std::vector<float>&) {
    const std::vector<float> stored = std::exchange(weight, {});
    weight.resize(static_cast<std::size_t>(c.projector_width * 9 * width));
    for (std::int64_t i = 0; i < std::ssize(stored); ++i) {
      const std::int64_t row = i / (4 * width);
      const std::int64_t channel = i % (4 * width) / 4;
      const std::int64_t tap = (i % 4 / 2 + 1) * 3 + i % 2 + 1;
      weight[static_cast<std::size_t>((row * 9 + tap) * width + channel)] =
          stored[static_cast<std::size_t>(i)];
    }
  };
  return loader.linear_from("projector.layers.0", {c.projector_width, 4 * width}, 9 * width,
                            spread);
}

}  // namespace

Weights load_weights(common::WeightLoader& loader, const Config& c,
                     const media::NormalizeTable& normalize) {
  Weights w;
  w.vision = load_tower(loader, c.tower, normalize);
  w.norm = loader.layer_norm("vision.norm", c.tower.hidden_size,
                             static_cast<float>(c.tower.layer_norm_eps));
  w.projector = {.fc1 = load_joining_layer(loader, c),
                 .fc2 = loader.linear("projector.layers.2", c.n_embed, {c.projector_width}),
                 .activation = ops::Activation::kGeluErf};
  w.image_newline = loader.row("image_newline", c.n_embed);
  w.view_seperator = loader.row("view_seperator", c.n_embed);
  return w;
}

}  // namespace fovea::deepseek_vl2
