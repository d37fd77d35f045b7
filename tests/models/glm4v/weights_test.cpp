// The list of tensors of GLM-4.1V.
#include "models/glm4v/model.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/golden.h"

namespace fovea::glm4v {
namespace {

/// What the check of a tower of the published size asks for.
common::WeightLoader asked_of(const Config& config) {
  static const auto source = checkpoint::WeightSource::dummy(0);
  common::WeightLoader loader(source, "model.visual.");
  (void)load_weights(loader, config, {});
  return loader;
}

TEST(Glm4vWeights, AreTheTensorsOfThePublishedTower) {
  const common::WeightLoader loader = asked_of({});
  EXPECT_EQ(loader.report().size(), 2u + 1 + 1 + 24 * 7 + 1 + 2 + 6);
  constexpr std::int64_t kWidth = 1536;
  constexpr std::int64_t kOut = 4096;
  const std::int64_t stem = 1176 * kWidth + kWidth + kWidth + 576 * kWidth;
  const std::int64_t block = 2 * kWidth + 4 * kWidth * kWidth + 3 * kWidth * kOut;
  const std::int64_t merger =
      kWidth + 4 * kWidth * kOut + kOut + kOut * kOut + 2 * kOut + 3 * kOut * 13696;
  EXPECT_EQ(loader.parameters(), stem + 24 * block + merger);
}

TEST(Glm4vWeights, HaveABiasOfQkvOnlyWhereTheConfigurationSaysSo) {
  Config config;
  config.attention_bias = true;
  EXPECT_EQ(asked_of(config).parameters() - asked_of({}).parameters(), 24 * 3 * 1536);
}

TEST(Glm4vWeights, WithoutATableHeadsAreNormalisedAndAllLayersOfABlockHaveABias) {
  Config config;
  config.has_table = false;
  config.attention_bias = true;
  config.mlp_width = 4096;
  const common::WeightLoader loader = asked_of(config);
  EXPECT_EQ(loader.report().size(), 2u + 24 * (7 + 5 + 2) + 1 + 2 + 6);
  const auto size_of = [&](const std::string& name) {
    const auto tensor =
        std::ranges::find(loader.report(), "model.visual.blocks.3." + name, &TensorReport::name);
    return tensor == loader.report().end() ? std::vector<std::int64_t>{} : tensor->shape;
  };
  EXPECT_EQ(size_of("attn.q_norm.weight"), std::vector<std::int64_t>{128});
  EXPECT_EQ(size_of("attn.k_norm.weight"), std::vector<std::int64_t>{128});
  EXPECT_EQ(size_of("attn.proj.bias"), std::vector<std::int64_t>{1536});
  EXPECT_EQ(size_of("mlp.up_proj.bias"), std::vector<std::int64_t>{4096});
  config.attention_bias = false;
  EXPECT_EQ(asked_of(config).report().size(), 2u + 24 * (7 + 2) + 1 + 2 + 6);
}

TEST(Glm4vWeights, AGoldenCheckpointHoldsThemAll) {
  for (const std::string& folder : test::golden_folders("glm4v", "model.safetensors")) {
    const auto source = checkpoint::WeightSource::open(folder);
    const auto prefix = checkpoint::find_prefix(source, "visual.", "patch_embed.proj.weight");
    common::WeightLoader loader(source, prefix.value());
    (void)load_weights(loader, parse_config(checkpoint::read_hf_config(folder)), {});
    EXPECT_TRUE(std::ranges::all_of(loader.report(),
                                    [](const TensorReport& t) { return t.problem.empty(); }));
  }
}

}  // namespace
}  // namespace fovea::glm4v
