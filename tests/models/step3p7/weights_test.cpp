// The list of tensors of Step-3.7.
#include <gtest/gtest.h>

#include <algorithm>

#include "models/step3p7/model.h"
#include "support/golden.h"

namespace fovea::step3p7 {
namespace {

TEST(Step3p7Weights, AreTheTensorsOfThePublishedTower) {
  const auto source = checkpoint::WeightSource::dummy(0);
  common::WeightLoader loader(source, "");
  const Weights w = load_weights(loader, Config{}, {});
  EXPECT_EQ(w.positions.shape, (Shape{2704, 1536}));
  EXPECT_EQ(loader.report().size(), 4u + 47 * 14 + 4 + 1);
  EXPECT_TRUE(std::ranges::any_of(loader.report(), [](const TensorReport& t) {
    return t.name == "vision_model.transformer.resblocks.46.attn.in_proj_bias";
  }));
  const std::int64_t block =
      4 * 1536 + 4 * 1536 * 1536 + 4 * 1536 + 2 * 1536 * 8960 + 8960 + 1536 + 2 * 1536;
  const std::int64_t convolutions = 9 * 1536 * 3072 + 3072 + 9 * 3072 * 6144 + 6144;
  EXPECT_EQ(loader.parameters(),
            588 * 1536 + 2704 * 1536 + 2 * 1536 + 47 * block + convolutions + 6144 * 4096);
}

TEST(Step3p7Weights, LayerScalesAndABiasAreThereWhereTheConfigurationSaysSo) {
  const auto source = checkpoint::WeightSource::dummy(0);
  common::WeightLoader loader(source, "");
  Config c;
  c.has_layer_scales = false;
  c.projector_bias = true;
  (void)load_weights(loader, c, {});
  EXPECT_EQ(loader.report().size(), 4u + 47 * 12 + 4 + 2);
}

TEST(Step3p7Weights, AGoldenCheckpointHoldsThemAll) {
  for (const std::string& folder : test::golden_folders("step3p7", "model.safetensors")) {
    const auto source = checkpoint::WeightSource::open(folder);
    common::WeightLoader loader(source, "");
    const Weights w = load_weights(loader, parse_config(checkpoint::read_hf_config(folder)), {});
    for (const TensorReport& tensor : loader.report()) EXPECT_EQ(tensor.problem, "") << tensor.name;
    EXPECT_FALSE(w.vit_large_projector.has_bias);
  }
}

}  // namespace
}  // namespace fovea::step3p7
