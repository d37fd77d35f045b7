// The list of tensors of MiniCPM-V 4.6.
#include <gtest/gtest.h>

#include <algorithm>

#include "models/minicpmv4_6/model.h"
#include "support/golden.h"

namespace fovea::minicpmv4_6 {
namespace {

TEST(MiniCpmV46Weights, TheLayersAreCutBehindTheOneThatIsNamed) {
  const auto source = checkpoint::WeightSource::dummy(0);
  common::WeightLoader loader(source, "");
  Config c;
  c.text_hidden_size = 1024;
  const Weights weights = load_weights(loader, c, {});
  EXPECT_EQ(weights.blocks.blocks.size(), 7u);
  EXPECT_EQ(weights.later_blocks.blocks.size(), 5u);
  EXPECT_EQ(loader.report().size(), 3u + 12 * 16 + 2 + 8 + 2 + 4 + 2 + 6);
}

TEST(MiniCpmV46Weights, AGoldenCheckpointHoldsThemAll) {
  const auto folders = test::golden_folders("minicpmv4_6", "model.safetensors");
  if (folders.empty()) GTEST_SKIP() << "no folder minicpmv4_6; set FOVEA_GOLDEN_DIR";
  for (const std::string& folder : folders) {
    const auto source = checkpoint::WeightSource::open(folder);
    common::WeightLoader loader(source, "model.");
    (void)load_weights(loader, parse_config(checkpoint::read_hf_config(folder)), {});
    EXPECT_TRUE(std::ranges::all_of(loader.report(),
                                    [](const TensorReport& t) { return t.problem.empty(); }));
  }
}

}  // namespace
}  // namespace fovea::minicpmv4_6
