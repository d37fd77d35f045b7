// The list of tensors of LFM2-VL, and what loading makes of patches.
#include <gtest/gtest.h>

#include <algorithm>

#include "models/lfm2_vl/model.h"
#include "support/golden.h"

namespace fovea::lfm2_vl {
namespace {

TEST(Lfm2VlWeights, AreTheTensorsOfATowerOfTheDefaults) {
  const auto source = checkpoint::WeightSource::dummy(0);
  common::WeightLoader loader(source, "");
  const Weights weights = load_weights(loader, Config{}, {});
  EXPECT_EQ(weights.position_embedding.shape, (Shape{256, 768}));
  EXPECT_EQ(loader.report().size(), 3u + 12 * 16 + 2 + 6);
  const std::int64_t block = 4 * 768 + 4 * (768 * 768 + 768) + 2 * 768 * 3072 + 3072 + 768;
  const std::int64_t projector = 2 * 3072 + 3072 * 2560 + 2560 + 2560 * 2560 + 2560;
  EXPECT_EQ(loader.parameters(), 769 * 768 + 256 * 768 + 12 * block + 2 * 768 + projector);
}

TEST(Lfm2VlWeights, TheProjectorMayHaveNeitherNormNorBiases) {
  const auto source = checkpoint::WeightSource::dummy(0);
  common::WeightLoader loader(source, "");
  Config c;
  c.num_hidden_layers = 1;
  c.projector_bias = false;
  c.projector_use_layernorm = false;
  const Weights weights = load_weights(loader, c, {});
  EXPECT_FALSE(weights.layer_norm.has_value());
  EXPECT_FALSE(weights.projector.fc1.has_bias);
  EXPECT_EQ(loader.report().size(), 3u + 16 + 2 + 2);
}

TEST(Lfm2VlWeights, AGoldenCheckpointHoldsThemAll) {
  const auto folders = test::golden_folders("lfm2_vl", "model.safetensors");
  if (folders.empty()) GTEST_SKIP() << "no folder lfm2_vl; set FOVEA_GOLDEN_DIR";
  for (const std::string& folder : folders) {
    const auto source = checkpoint::WeightSource::open(folder);
    common::WeightLoader loader(source, "model.");
    (void)load_weights(loader, parse_config(checkpoint::read_hf_config(folder)), {});
    EXPECT_TRUE(std::ranges::all_of(loader.report(),
                                    [](const TensorReport& t) { return t.problem.empty(); }));
  }
}

}  // namespace
}  // namespace fovea::lfm2_vl
