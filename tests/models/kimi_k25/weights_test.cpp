// The list of tensors of Kimi-K2.5.
#include <gtest/gtest.h>

#include <algorithm>

#include "models/kimi_k25/model.h"
#include "support/golden.h"

namespace fovea::kimi_k25 {
namespace {

TEST(KimiK25Weights, AreThoseOfKimiVlWithAnotherProjector) {
  const auto source = checkpoint::WeightSource::dummy(0);
  common::WeightLoader loader(source, "");
  Config c{.init_pos_emb_time = 4, .text_hidden_size = 7168};
  const common::MoonVitWeights weights = load_weights(loader, c, {});
  EXPECT_EQ(weights.times.shape, (Shape{5, 1152})) << "computed, in no checkpoint";
  EXPECT_EQ(loader.report().size(), 3u + 27 * 12 + 8);
  EXPECT_TRUE(std::ranges::any_of(
      loader.report(), [](const TensorReport& t) { return t.name == "mm_projector.proj.2.bias"; }));
}

TEST(KimiK25Weights, AGoldenCheckpointHoldsThemAll) {
  for (const std::string& folder : test::golden_folders("kimi_k25", "model.safetensors")) {
    const auto source = checkpoint::WeightSource::open(folder);
    common::WeightLoader loader(source, "");
    (void)load_weights(loader, parse_config(checkpoint::read_hf_config(folder)), {});
    EXPECT_TRUE(std::ranges::all_of(loader.report(),
                                    [](const TensorReport& t) { return t.problem.empty(); }));
  }
}

}  // namespace
}  // namespace fovea::kimi_k25
