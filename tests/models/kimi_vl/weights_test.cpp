// The list of tensors of Kimi-VL.
#include "models/kimi_vl/model.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/golden.h"

namespace fovea::kimi_vl {
namespace {

TEST(KimiVlWeights, AreTheTensorsOfThePublishedTower) {
  const auto source = checkpoint::WeightSource::dummy(0);
  common::WeightLoader loader(source, "");
  const Weights weights = load_weights(loader, Config{}, {});
  EXPECT_EQ(weights.pos_emb.shape, (Shape{64 * 64, 1152}));
  EXPECT_EQ(loader.report().size(), 3u + 27 * 12 + 8);
  const std::int64_t block =
      4 * 1152 + 1152 * 3456 + 3456 + 1152 * 1152 + 1152 + 2 * 1152 * 4304 + 4304 + 1152;
  const std::int64_t projector = 4608 * 4608 + 4608 + 4608 * 2048 + 2048;
  EXPECT_EQ(loader.parameters(), 589 * 1152 + 64 * 64 * 1152 + 27 * block + 4 * 1152 + projector);
}

TEST(KimiVlWeights, TheTableOfPositionsNeedNotBeASquare) {
  const auto source = checkpoint::WeightSource::dummy(0);
  common::WeightLoader loader(source, "");
  Config c;
  c.num_hidden_layers = 1;
  c.init_pos_emb_height = 12;
  c.init_pos_emb_width = 18;
  EXPECT_EQ(load_weights(loader, c, {}).pos_emb.shape, (Shape{12 * 18, 1152}));
}

TEST(KimiVlWeights, AGoldenCheckpointHoldsThemAll) {
  for (const std::string& folder : test::golden_folders("kimi_vl", "model.safetensors")) {
    const auto source = checkpoint::WeightSource::open(folder);
    common::WeightLoader loader(source, "");
    (void)load_weights(loader, parse_config(checkpoint::read_hf_config(folder)), {});
    EXPECT_TRUE(std::ranges::all_of(loader.report(),
                                    [](const TensorReport& t) { return t.problem.empty(); }));
  }
}

}  // namespace
}  // namespace fovea::kimi_vl
