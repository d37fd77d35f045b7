// The tensors of the tower.
#include "models/qwen3_vl/weights.h"

#include "core/check.h"

namespace fovea::qwen3_vl {

namespace {

BlockWeights load_block(blocks::WeightLoader& loader, const Config& c, const std::string& name) {
  return {.norm1 = loader.layer_norm(name + ".norm1", c.hidden_size),
          .norm2 = loader.layer_norm(name + ".norm2", c.hidden_size),
          .qkv = loader.qkv(name + ".attn", c.hidden_size),
          .proj = loader.linear(name + ".attn.proj", c.hidden_size, {c.hidden_size}),
          .fc1 = loader.linear(name + ".mlp.linear_fc1", c.intermediate_size, {c.hidden_size}),
          .fc2 = loader.linear(name + ".mlp.linear_fc2", c.hidden_size, {c.intermediate_size})};
}

MergerWeights load_merger(blocks::WeightLoader& loader, const Config& c, const std::string& name,
                          std::int64_t norm_features) {
  const std::int64_t joined = c.merge_area() * c.hidden_size;
  return {.norm = loader.layer_norm(name + ".norm", norm_features),
          .fc1 = loader.linear(name + ".linear_fc1", joined, {joined}),
          .fc2 = loader.linear(name + ".linear_fc2", c.out_hidden_size, {joined})};
}

}  // namespace

Weights load_weights(blocks::WeightLoader& loader, const Config& c) {
  Weights w;
  w.patch_embed = loader.linear("patch_embed.proj", c.hidden_size,
                                {c.in_channels, c.temporal_patch_size, c.patch_size, c.patch_size});
  w.pos_embed = loader.f32("pos_embed.weight", {c.num_position_embeddings, c.hidden_size});
  for (std::int64_t i = 0; i < c.depth; ++i) {
    w.blocks.push_back(load_block(loader, c, cat("blocks.", i)));
  }
  w.merger = load_merger(loader, c, "merger", c.hidden_size);
  for (std::int64_t k = 0; k < c.num_deepstack(); ++k) {
    w.deepstack_mergers.push_back(
        load_merger(loader, c, cat("deepstack_merger_list.", k), c.merge_area() * c.hidden_size));
  }
  return w;
}

std::string weight_prefix(const checkpoint::WeightSource& source) {
  if (source.is_dummy()) return "model.visual.";
  const auto prefix = checkpoint::find_prefix(source.names(), "visual.", "patch_embed.proj.weight");
  FOVEA_CHECK(prefix.has_value(), kNotFound, "checkpoint holds no vision tower: none of its ",
              source.names().size(), " tensors ends with \"visual.patch_embed.proj.weight\"");
  return *prefix;
}

}  // namespace fovea::qwen3_vl
