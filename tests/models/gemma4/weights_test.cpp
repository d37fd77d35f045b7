// The list of tensors of Gemma 4, and the layers that bounds make of them.
#include <gtest/gtest.h>

#include <algorithm>

#include "models/gemma4/model.h"
#include "support/golden.h"

namespace fovea::gemma4 {
namespace {

Config small(bool is_clipped) {
  Config c;
  c.num_hidden_layers = 1;
  c.text_hidden_size = 1536;
  c.use_clipped_linears = is_clipped;
  return c;
}

TEST(Gemma4Weights, ClippedLayersHaveBoundsAndInputsOfTheirOwn) {
  const auto source = checkpoint::WeightSource::dummy(0);
  common::WeightLoader loader(source, "");
  const Weights weights = load_weights(loader, small(true), {});
  const Block& block = weights.blocks.front();
  ASSERT_EQ(block.qkv.parts.size(), 3u);
  EXPECT_EQ(block.qkv.out_features(), 3 * 768);
  EXPECT_EQ(block.qkv.output->least.shape, Shape{3 * 768});
  EXPECT_EQ(block.gate_up.parts.size(), 2u);
  EXPECT_EQ(block.down_proj.parts.front().input->most.shape, Shape{3072});
  EXPECT_FALSE(weights.standardization.has_value());
  EXPECT_EQ(loader.report().size(), 2u + 13 + 7 * 4 + 1);
}

TEST(Gemma4Weights, OtherLayersAreFused) {
  const auto source = checkpoint::WeightSource::dummy(0);
  common::WeightLoader loader(source, "");
  Config c = small(false);
  c.standardize = true;
  const Weights weights = load_weights(loader, c, {});
  EXPECT_EQ(weights.blocks.front().qkv.parts.size(), 1u);
  EXPECT_EQ(weights.blocks.front().gate_up.parts.front().layer.out_features, 2 * 3072);
  EXPECT_FALSE(weights.blocks.front().qkv.output.has_value());
  EXPECT_TRUE(weights.standardization.has_value());
  EXPECT_EQ(loader.report().size(), 2u + 13 + 2 + 1);
  EXPECT_EQ(loader.parameters(), 768 * 768 + 2 * 10240 * 768 + 4 * 768 * 768 + 3 * 768 * 3072 +
                                     4 * 768 + 2 * 64 + 2 * 768 + 768 * 1536);
}

TEST(Gemma4Weights, GoldenCheckpointsHoldThemAll) {
  for (const char* name : {"gemma4", "gemma4_standardized"}) {
    const auto folders = test::golden_folders(name, "model.safetensors");
    if (folders.empty()) GTEST_SKIP() << "no folder " << name << "; set FOVEA_GOLDEN_DIR";
    for (const std::string& folder : folders) {
      const auto source = checkpoint::WeightSource::open(folder);
      common::WeightLoader loader(source, "model.");
      (void)load_weights(loader, parse_config(checkpoint::read_hf_config(folder)), {});
      EXPECT_TRUE(std::ranges::all_of(loader.report(),
                                      [](const TensorReport& t) { return t.problem.empty(); }));
    }
  }
}

}  // namespace
}  // namespace fovea::gemma4
