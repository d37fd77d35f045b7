// The list of tensors of DeepSeek-OCR 2.
#include <gtest/gtest.h>

#include <algorithm>

#include "models/deepseek_ocr2/model.h"
#include "support/golden.h"

namespace fovea::deepseek_ocr2 {
namespace {

Weights load(common::WeightLoader& loader, const Config& config) {
  return load_weights(loader, config,
                      {common::sam_view(kBaseSide, kPatch), common::sam_view(kTileSide, kPatch)},
                      {});
}

TEST(DeepseekOcr2Weights, AreTheTensorsOfTheReleasedTowers) {
  const auto source = checkpoint::WeightSource::dummy(0);
  common::WeightLoader loader(source, "model.");
  const Weights w = load(loader, Config{});
  const auto count = [&](std::string_view prefix) {
    return std::ranges::count_if(loader.report(), [&](const TensorReport& tensor) {
      return tensor.name.starts_with(prefix);
    });
  };
  EXPECT_EQ(count("model.sam_model."), 179);
  EXPECT_EQ(count("model.qwen2_model."), 24 * 12 + 1 + 2);
  EXPECT_EQ(loader.report().size(), 179u + 291 + 3);
  EXPECT_EQ(w.sam.pos_embed[kLocal].shape, (Shape{48 * 48, 768}));
  EXPECT_EQ(w.queries[kGlobal].shape, (Shape{256, 896}));
  EXPECT_EQ(w.queries[kLocal].shape, (Shape{144, 896}));
  EXPECT_EQ(w.inv_freq.shape, (Shape{32})) << "one for each pair of a head";
  EXPECT_EQ(w.layers[0].attn.qkv.out_features, 3 * 896) << "heads of keys are repeated";
  const std::int64_t layer =
      2 * 896 + 896 * 896 + 896 + 2 * (128 * 896 + 128) + 896 * 896 + 3 * 896 * 4864;
  const std::int64_t decoder = 24 * layer + 896 + (256 + 144) * 896;
  const std::int64_t sam = 95569152 - (1024 - 896) * 512 * 9;
  EXPECT_EQ(loader.parameters(), sam + decoder + 896 * 1280 + 2 * 1280);
}

TEST(DeepseekOcr2Weights, AGoldenCheckpointHoldsThemAll) {
  const auto folders = test::golden_folders("deepseek_ocr2", "model.safetensors");
  if (folders.empty()) GTEST_SKIP() << "no folder deepseek_ocr2; set FOVEA_GOLDEN_DIR";
  for (const std::string& folder : folders) {
    const auto source = checkpoint::WeightSource::open(folder);
    common::WeightLoader loader(source, "model.");
    (void)load(loader, parse_config(checkpoint::read_hf_config(folder)));
    for (const TensorReport& tensor : loader.report()) EXPECT_EQ(tensor.problem, "") << tensor.name;
  }
}

}  // namespace
}  // namespace fovea::deepseek_ocr2
