// The list of tensors of PaddleOCR-VL.
#include <gtest/gtest.h>

#include <algorithm>

#include "models/paddleocr_vl/model.h"
#include "support/golden.h"

namespace fovea::paddleocr_vl {
namespace {

TEST(PaddleOcrVlWeights, AreTheTensorsOfThePublishedTower) {
  const auto source = checkpoint::WeightSource::dummy(0);
  common::WeightLoader loader(source, "");
  const Weights weights = load_weights(loader, Config{}, {});
  EXPECT_EQ(weights.position_embedding.shape, (Shape{27 * 27, 1152}));
  EXPECT_EQ(loader.report().size(), 3u + 27 * 16 + 2 + 6);
  const std::int64_t block = 4 * 1152 + 4 * (1152 * 1152 + 1152) + 2 * 1152 * 4304 + 4304 + 1152;
  const std::int64_t projector = 2 * 1152 + 4608 * 4608 + 4608 + 4608 * 1024 + 1024;
  EXPECT_EQ(loader.parameters(), 589 * 1152 + 729 * 1152 + 27 * block + 2 * 1152 + projector);
}

TEST(PaddleOcrVlWeights, EveryNormOfTheTowerHasTheEpsilonOfItsFile) {
  const auto source = checkpoint::WeightSource::dummy(0);
  common::WeightLoader loader(source, "");
  Config c;
  c.num_hidden_layers = 1;
  c.layer_norm_eps = 1e-3;
  const Weights weights = load_weights(loader, c, {});
  EXPECT_EQ(weights.blocks.blocks[0].norm1.epsilon, 1e-3f);
  EXPECT_EQ(weights.blocks.blocks[0].norm2.epsilon, 1e-3f);
  EXPECT_EQ(weights.post_layernorm.epsilon, 1e-3f);
  EXPECT_EQ(weights.pre_norm.epsilon, 1e-5f) << "fixed in the reference";
}

TEST(PaddleOcrVlWeights, AGoldenCheckpointHoldsThemAll) {
  const auto folders = test::golden_folders("paddleocr_vl", "model.safetensors");
  if (folders.empty()) GTEST_SKIP() << "no folder paddleocr_vl; set FOVEA_GOLDEN_DIR";
  for (const std::string& folder : folders) {
    const auto source = checkpoint::WeightSource::open(folder);
    common::WeightLoader loader(source, "");
    (void)load_weights(loader, parse_config(checkpoint::read_hf_config(folder)), {});
    EXPECT_TRUE(std::ranges::all_of(loader.report(),
                                    [](const TensorReport& t) { return t.problem.empty(); }));
  }
}

}  // namespace
}  // namespace fovea::paddleocr_vl
