// The list of tensors of HunyuanOCR.
#include <gtest/gtest.h>

#include <algorithm>

#include "models/hunyuan_vl/model.h"
#include "support/golden.h"

namespace fovea::hunyuan_vl {
namespace {

TEST(HunyuanVlWeights, AreTheTensorsOfThePublishedTower) {
  const auto source = checkpoint::WeightSource::dummy(0);
  common::WeightLoader loader(source, "");
  const Weights weights = load_weights(loader, Config{}, {});
  EXPECT_EQ(weights.position_embedding.shape, (Shape{128 * 128, 1152})) << "no class token";
  EXPECT_EQ(loader.report().size(), 3u + 27 * 16 + 11);
  const std::int64_t block = 4 * 1152 + 4 * (1152 * 1152 + 1152) + 2 * 1152 * 4304 + 4304 + 1152;
  const std::int64_t convolutions = 2304 * 4608 + 2304 + 4608 * 2304 + 4608;
  const std::int64_t projector = 1152 + convolutions + 4608 + 1024 * 4608 + 4 * 1024;
  EXPECT_EQ(loader.parameters(), 769 * 1152 + 16385 * 1152 + 27 * block + projector);
}

TEST(HunyuanVlWeights, EveryNormHasTheEpsilonOfItsFile) {
  const auto source = checkpoint::WeightSource::dummy(0);
  common::WeightLoader loader(source, "");
  Config c;
  c.num_hidden_layers = 1;
  c.rms_norm_eps = 1e-3;
  const Weights weights = load_weights(loader, c, {});
  EXPECT_EQ(weights.blocks.blocks[0].norm1.epsilon, 1e-3f);
  EXPECT_EQ(weights.blocks.blocks[0].norm2.epsilon, 1e-3f);
  EXPECT_EQ(weights.perceive.before_rms.epsilon, 1e-3f);
  EXPECT_EQ(weights.perceive.after_rms.epsilon, 1e-3f);
}

TEST(HunyuanVlWeights, AGoldenCheckpointHoldsThemAll) {
  const auto folders = test::golden_folders("hunyuan_vl", "model.safetensors");
  if (folders.empty()) GTEST_SKIP() << "no folder hunyuan_vl; set FOVEA_GOLDEN_DIR";
  for (const std::string& folder : folders) {
    const auto source = checkpoint::WeightSource::open(folder);
    common::WeightLoader loader(source, "");
    (void)load_weights(loader, parse_config(checkpoint::read_hf_config(folder)), {});
    EXPECT_TRUE(std::ranges::all_of(loader.report(),
                                    [](const TensorReport& t) { return t.problem.empty(); }));
  }
}

}  // namespace
}  // namespace fovea::hunyuan_vl
