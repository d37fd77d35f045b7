// The tensors of the tower and its adapter.
#include <numeric>
#include <string>

#include "models/common/blocks.h"
#include "models/molmo2/model.h"

namespace fovea::molmo2 {

namespace {

using Bias = common::WeightLoader::Bias;

Bias bias_of(bool has_bias) { return has_bias ? Bias::kYes : Bias::kNo; }

const common::BlockNames kBlockNames{.norm1 = "attention_norm",
                                     .norm2 = "ffn_norm",
                                     .qkv = {"attention.wq", "attention.wk", "attention.wv"},
                                     .proj = "attention.wo",
                                     .fc1 = "feed_forward.w1",
                                     .fc2 = "feed_forward.w2"};

common::SiglipTower load_tower(common::WeightLoader& loader, const Config& c,
                               const media::NormalizeTable& normalize) {
  const std::string vit = "vision_backbone.image_vit.";
  const common::SiglipConfig& tower = c.tower;
  const std::int64_t pixels = tower.view.patch_px * tower.view.patch_px;
  common::BlockShape shape = common::block_shape(tower);
  shape.qkv_bias = shape.proj_bias = bias_of(c.attention_bias);
  return {.patch_embedding = {.normalize = loader.constant(normalize),
                              .proj = loader.channels_last(vit + "patch_embedding",
                                                           tower.hidden_size, pixels, Bias::kYes)},
          .position_embedding =
              loader.f32(vit + "positional_embedding", {tower.view.patches(), tower.hidden_size}),
          .blocks = common::load_blocks(loader, vit + "transformer.resblocks.", kBlockNames, shape,
                                        tower.num_hidden_layers)};
}

}  // namespace

Weights load_weights(common::WeightLoader& loader, const Config& c, const Processing& processing) {
  const std::string pooling = "vision_backbone.image_pooling_2d.";
  const std::string projector = "vision_backbone.image_projector.";
  const std::int64_t width = c.tower.hidden_size;
  const std::int64_t wide = c.adapter_intermediate_size;
  const std::int64_t features = c.feature_width();
  const Bias bias = bias_of(c.adapter_attention_bias);
  const media::NormalizeTable normalize = processing.views.scaling.table();
  media::NormalizeTable raw{};
  for (auto& channel : raw) std::iota(channel.begin(), channel.end(), 0.0f);
  return {
      .tower = load_tower(loader, c, normalize),
      .frame_bytes = loader.constant(processing.raw_videos ? raw : normalize),
      .pooling = {.wq = loader.linear(pooling + "wq", width, {features}, bias),
                  .wkv = loader.fused({pooling + "wk", pooling + "wv"}, width, {features}, bias),
                  .wo = loader.linear(pooling + "wo", width, {width}, bias)},
      .projector = {
          .gate_up = loader.fused({projector + "w1", projector + "w3"}, wide, {width}, Bias::kNo),
          .down = loader.linear(projector + "w2", c.text_hidden_size, {wide}, Bias::kNo),
          .activation = c.adapter_hidden_act}};
}

}  // namespace fovea::molmo2
