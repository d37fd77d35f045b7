// The list of tensors of Qwen2.5-VL.
#include "models/qwen2_5_vl/model.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/golden.h"

namespace fovea::qwen2_5_vl {
namespace {

TEST(Qwen25VlWeights, AreTheTensorsOfThePublishedTower) {
  const auto source = checkpoint::WeightSource::dummy(0);
  common::WeightLoader loader(source, "visual.");
  const Weights weights = load_weights(loader, {.hidden_size = 1280}, {});
  EXPECT_EQ(loader.report().size(), 1u + 32 * 12 + 5);
  const std::int64_t block = 2 * 1280 + 1280 * 3840 + 3840 + 1280 * 1280 + 1280 +
                             2 * (1280 * 3420 + 3420) + 3420 * 1280 + 1280;
  const std::int64_t merger = 1280 + 5120 * 5120 + 5120 + 5120 * 3584 + 3584;
  EXPECT_EQ(loader.parameters(), 1176 * 1280 + 32 * block + merger);
  EXPECT_EQ(weights.blocks.front().mlp.gate_up.out_features, 2 * 3424);
}

TEST(Qwen25VlWeights, SharedHeadsAreStoredOnce) {
  const auto source = checkpoint::WeightSource::dummy(0);
  common::WeightLoader loader(source, "visual.");
  const Weights weights =
      load_weights(loader, {.depth = 1, .hidden_size = 1280, .num_key_value_heads = 4}, {});
  const auto qkv =
      std::ranges::find(loader.report(), "visual.blocks.0.attn.qkv.weight", &TensorReport::name);
  ASSERT_NE(qkv, loader.report().end());
  EXPECT_EQ(qkv->shape, (std::vector<std::int64_t>{1280 + 2 * 4 * 80, 1280}));
  EXPECT_EQ(weights.blocks.front().attn.qkv.out_features, 3 * 1280);
}

TEST(Qwen25VlWeights, AGoldenCheckpointHoldsThemAll) {
  for (const std::string& folder : test::golden_folders("qwen2_5_vl", "model.safetensors")) {
    const auto source = checkpoint::WeightSource::open(folder);
    const auto prefix = checkpoint::find_prefix(source, "visual.", "patch_embed.proj.weight");
    common::WeightLoader loader(source, prefix.value());
    (void)load_weights(loader, parse_config(checkpoint::read_hf_config(folder)), {});
    EXPECT_TRUE(std::ranges::all_of(loader.report(),
                                    [](const TensorReport& t) { return t.problem.empty(); }));
  }
}

}  // namespace
}  // namespace fovea::qwen2_5_vl
