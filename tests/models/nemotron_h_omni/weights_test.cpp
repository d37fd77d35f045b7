// The list of tensors of Nemotron Omni, and the rows of its video.
#include <gtest/gtest.h>

#include <algorithm>

#include "checkpoint/safetensors.h"
#include "models/golden_video.h"
#include "models/nemotron_h_omni/model.h"
#include "support/golden.h"
#include "support/temporary_directory.h"

namespace fovea::nemotron_h_omni {
namespace {

TEST(NemotronHOmniWeights, AreTheTensorsOfThePublishedTower) {
  const auto source = checkpoint::WeightSource::dummy(0);
  common::WeightLoader loader(source, "");
  Config c;
  c.text_hidden_size = 2688;
  c.projector_hidden_size = 20480;
  const Weights weights = load_weights(loader, c, {});
  EXPECT_EQ(weights.blocks.blocks.size(), 32u);
  EXPECT_FALSE(weights.final_norm.has_value());
  EXPECT_EQ(weights.position_table.shape, (Shape{128 * 128, 1280}));
  EXPECT_EQ(loader.report().size(), 4u + 32 * 12 + 3);
  const std::int64_t block = 4 * 1280 + 4 * (1280 * 1280 + 1280) + 2 * 1280 * 5120 + 5120 + 1280;
  const std::int64_t patches = 3 * 768 * 1280 + 10 * 1280 + 128 * 128 * 1280;
  EXPECT_EQ(loader.parameters(), patches + 32 * block + 5120 + 20480 * 5120 + 20480 * 2688);
}

TEST(NemotronHOmniWeights, ANormThatNoCheckpointStoresEndsTowersOfSomeLanguageModels) {
  const auto source = checkpoint::WeightSource::dummy(0);
  common::WeightLoader loader(source, "");
  Config c;
  c.text_hidden_size = 64;
  c.num_hidden_layers = 1;
  c.vision_final_layernorm = true;
  EXPECT_TRUE(load_weights(loader, c, {}).final_norm.has_value());
  EXPECT_EQ(loader.report().size(), 4u + 12 + 3);
}

TEST(NemotronHOmniWeights, LayerScalesAndTheLastNormAreReadWhereTheyAreStored) {
  constexpr std::int64_t kWidth = 16;
  const std::vector<float> ones(kWidth, 1.0f);
  const std::string block = "vision_model.radio_model.model.blocks.0.";
  const std::string norm = "vision_projector.vision_final_layernorm.";
  const std::vector<std::string> names{block + "layer_scale1.lambda1",
                                       block + "layer_scale2.lambda1", norm + "bias",
                                       norm + "weight"};
  std::vector<checkpoint::OutputTensor> tensors;
  for (const std::string& name : names) {
    const auto* data = reinterpret_cast<const std::byte*>(ones.data());
    tensors.push_back({name, {data, DType::kF32, {kWidth}}});
  }
  const test::TemporaryDirectory folder;
  checkpoint::write_safetensors(folder / "model.safetensors", tensors, {});
  const auto source = checkpoint::WeightSource::open(folder.path());
  common::WeightLoader loader(source, "");
  Config c{.hidden_size = kWidth, .num_hidden_layers = 1, .num_attention_heads = 2};
  c.vision_final_layernorm = true;
  (void)load_weights(loader, c, {});
  for (const std::string& name : names) {
    const auto entry = std::ranges::find(loader.report(), name, &TensorReport::name);
    ASSERT_NE(entry, loader.report().end()) << name;
    EXPECT_EQ(entry->problem, "") << name;
  }
}

TEST(NemotronHOmniWeights, AGoldenVideoHasTheRowsOfTheReference) {
  const auto folders = test::golden_folders("nemotron_h_omni", "golden.safetensors");
  if (folders.empty()) GTEST_SKIP() << "no folder nemotron_h_omni; set FOVEA_GOLDEN_DIR";
  for (const std::string& folder : folders) test::expect_golden_video(folder, 1e-5);
}

}  // namespace
}  // namespace fovea::nemotron_h_omni
