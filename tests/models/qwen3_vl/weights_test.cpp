// The list of tensors: all that the published checkpoints hold for the tower, and nothing else.
#include "models/qwen3_vl/model.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/check.h"
#include "support/golden.h"

namespace fovea::qwen3_vl {
namespace {

/// The tower of the 8B, 30B-A3B and larger checkpoints.
Config published(std::int64_t out_hidden_size) {
  Config config;
  config.out_hidden_size = out_hidden_size;
  config.deepstack_visual_indexes = {8, 16, 24};
  return config;
}

TEST(Qwen3VlWeights, PositionsBeyondASquareAreLeftOver) {
  const auto source = checkpoint::WeightSource::dummy(0);
  common::WeightLoader loader(source, "");
  Config config = published(64);
  config.num_position_embeddings = 10;
  EXPECT_EQ(load_weights(loader, config, {}).pos_embed.shape, (Shape{9, 1152}));
  const auto table = std::ranges::find(loader.report(), "pos_embed.weight", &TensorReport::name);
  ASSERT_NE(table, loader.report().end());
  EXPECT_EQ(table->shape, (std::vector<std::int64_t>{10, 1152}));
}

TEST(Qwen3VlWeights, AreTheTensorsOfThePublishedCheckpoints) {
  struct Case {
    const char* name;
    std::int64_t out_hidden_size, parameters;
  };
  for (const Case& c : {Case{"8B", 4096, 576388336}, Case{"30B-A3B", 2048, 538631408}}) {
    SCOPED_TRACE(c.name);
    const auto source = checkpoint::WeightSource::dummy(0);
    common::WeightLoader loader(source, "model.visual.");
    (void)load_weights(loader, published(c.out_hidden_size), {});
    const auto count = [&](std::string_view prefix) {
      return std::ranges::count_if(loader.report(), [&](const TensorReport& tensor) {
        return tensor.name.starts_with(prefix);
      });
    };
    EXPECT_EQ(count("model.visual.patch_embed."), 2);
    EXPECT_EQ(count("model.visual.pos_embed."), 1);
    EXPECT_EQ(count("model.visual.blocks."), 27 * 12);
    EXPECT_EQ(count("model.visual.merger."), 6);
    EXPECT_EQ(count("model.visual.deepstack_merger_list."), 3 * 6);
    EXPECT_EQ(loader.report().size(), 351u);
    EXPECT_EQ(loader.parameters(), c.parameters);
  }
}

TEST(Qwen3VlWeights, DeepstackMergersNormaliseJoinedRows) {
  const auto source = checkpoint::WeightSource::dummy(0);
  common::WeightLoader loader(source, "");
  const Weights w = load_weights(loader, published(4096), {});
  EXPECT_EQ(w.merger.norm.weight.shape, Shape{1152});
  ASSERT_EQ(w.deepstack.size(), 3u);
  EXPECT_EQ(w.deepstack[0].norm.weight.shape, Shape{4 * 1152});
  EXPECT_EQ(w.inv_freq.shape, Shape{36});
}

TEST(Qwen3VlWeights, AreNamedAsTheConfigurationSays) {
  const auto source = checkpoint::WeightSource::dummy(0);
  common::WeightLoader loader(source, "thinker.visual.");
  Config config = published(2048);
  config.mergers = {"merger_list.", ".ln_q", ".mlp.0", ".mlp.2"};
  (void)load_weights(loader, config, {});
  for (const char* name : {"merger.ln_q.weight", "merger.mlp.0.bias", "merger.mlp.2.weight",
                           "merger_list.2.ln_q.bias", "merger_list.0.mlp.2.bias"}) {
    EXPECT_EQ(
        std::ranges::count(loader.report(), cat("thinker.visual.", name), &TensorReport::name), 1)
        << name;
  }
  EXPECT_EQ(loader.report().size(), 351u);
}

TEST(Qwen3VlWeights, AGoldenCheckpointHoldsThemAll) {
  for (const std::string& folder : test::golden_folders("qwen3_vl", "model.safetensors")) {
    const auto source = checkpoint::WeightSource::open(folder);
    common::WeightLoader loader(source, "model.visual.");
    (void)load_weights(loader, parse_config(checkpoint::read_hf_config(folder)), {});
    for (const TensorReport& tensor : loader.report()) EXPECT_EQ(tensor.problem, "") << tensor.name;
  }
}

}  // namespace
}  // namespace fovea::qwen3_vl
