// The tensors of the tower and its projector, in both formats.
#include <string>
#include <utility>
#include <vector>

#include "models/common/pixel_levels.h"
#include "models/phi4_multimodal/model.h"

namespace fovea::phi4_multimodal {

namespace {

/// The names that differ between the formats.
struct Names {
  std::string row_end, between, fc1, fc2;
};

Names names_of(Format format) {
  if (format == Format::kVendor)
    return {"sub_GN", "glb_GN", "img_projection.0", "img_projection.2"};
  return {"sub_img_feature_extensor", "global_img_feature_extensor", "img_projection_up",
          "img_projection_down"};
}

}  // namespace

Weights load_weights(common::WeightLoader& loader, const Config& c,
                     const common::PixelScaling& scaling) {
  const std::string image = "embed_tokens_extend.image_embed.";
  const std::string tower = image + "img_processor.";
  const Names names = names_of(c.format);
  const std::int64_t width = c.tower.hidden_size;
  const std::int64_t patch = c.tower.view.patch_px;
  const std::int64_t text = c.text_hidden_size;
  const auto as_stored = [](std::span<const float> values) {
    return std::vector<float>(values.begin(), values.end());
  };
  Weights w;
  w.patch_embedding = {
      .normalize = loader.constant(common::level_table()),
      .proj = loader.linear_from(
          tower + "embeddings.patch_embedding", {width, 3, patch, patch},
          3 * patch * patch * static_cast<std::int64_t>(media::kLevelBytes),
          common::split_levels(patch * patch, media::level_scale(media::FineFilter::kPlainBicubic),
                               scaling))};
  w.position_embedding =
      loader.f32(tower + "embeddings.position_embedding.weight", {c.tower.view.patches(), width});
  w.blocks = common::load_siglip_blocks(loader, tower, c.tower);
  w.row_end = loader.f32_from(image + names.row_end, {1, 1, 1, width}, {1, width}, as_stored);
  w.between = loader.f32_from(image + names.between, {1, 1, width}, {1, width}, as_stored);
  w.projector = {.fc1 = loader.linear(image + names.fc1, text, {width}),
                 .fc2 = loader.linear(image + names.fc2, text, {text}),
                 .activation = ops::Activation::kGeluErf};
  return w;
}

}  // namespace fovea::phi4_multimodal
