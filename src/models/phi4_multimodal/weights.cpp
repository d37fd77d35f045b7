// The tensors of the tower and its projector, in both formats.
#include <string>

#include "models/common/views/levels.h"
#include "models/phi4_multimodal/model.h"

namespace fovea::phi4_multimodal {

Weights load_weights(common::WeightLoader& loader, const Config& c,
                     const common::PixelScaling& scaling) {
  const std::string image = "embed_tokens_extend.image_embed.";
  const std::string tower = image + "img_processor.";
  const auto name = [&](const char* native, const char* vendor) {
    return image + (c.format == Format::kNative ? native : vendor);
  };
  const std::int64_t width = c.tower.hidden_size;
  const std::int64_t text = c.text_hidden_size;
  Weights w;
  w.tower.patch_embedding =
      common::load_patch_embedding(loader, tower + "embeddings.patch_embedding", width,
                                   c.tower.view, scaling, media::FineFilter::kPlainBicubic);
  w.tower.position_embedding =
      loader.f32(tower + "embeddings.position_embedding.weight", {c.tower.view.patches(), width});
  w.tower.blocks = common::load_siglip_blocks(loader, tower, c.tower);
  w.row_end = loader.f32(name("sub_img_feature_extensor", "sub_GN"), {1, 1, 1, width}, {1, width});
  w.between = loader.f32(name("global_img_feature_extensor", "glb_GN"), {1, 1, width}, {1, width});
  w.projector = {
      .fc1 = loader.linear(name("img_projection_up", "img_projection.0"), text, {width}),
      .fc2 = loader.linear(name("img_projection_down", "img_projection.2"), text, {text}),
      .activation = ops::Activation::kGeluErf};
  return w;
}

}  // namespace fovea::phi4_multimodal
