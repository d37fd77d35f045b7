// The list of tensors of MiniMax-M3, and the frequencies of three axes.
#include <gtest/gtest.h>

#include <algorithm>

#include "models/minimax_m3_vl/model.h"
#include "support/golden.h"

namespace fovea::minimax_m3_vl {
namespace {

TEST(MiniMaxM3Weights, AreTheTensorsOfATowerOfTheDefaults) {
  const auto source = checkpoint::WeightSource::dummy(0);
  common::WeightLoader loader(source, "");
  const Weights weights = load_weights(loader, Config{}, {});
  EXPECT_EQ(weights.inv_freq.shape, (Shape{3, 40}));
  EXPECT_EQ(loader.report().size(), 3u + 32 * 16 + 8);
  const std::int64_t block = 4 * (1280 * 1280 + 1280) + 2 * 1280 * 5120 + 5120 + 1280 + 4 * 1280;
  const std::int64_t projector =
      1280 * 6144 + 6144 * 6144 + 4 * 6144 * 6144 + 6144 * 6144 + 4 * 6144;
  EXPECT_EQ(loader.parameters(), 1280 * 1176 + 2 * 1280 + 32 * block + projector);
}

TEST(MiniMaxM3Weights, AGoldenCheckpointHoldsThemAll) {
  const auto folders = test::golden_folders("minimax_m3_vl", "model.safetensors");
  if (folders.empty()) GTEST_SKIP() << "no folder minimax_m3_vl; set FOVEA_GOLDEN_DIR";
  for (const std::string& folder : folders) {
    const auto source = checkpoint::WeightSource::open(folder);
    common::WeightLoader loader(source, "");
    (void)load_weights(loader, parse_config(checkpoint::read_hf_config(folder)), {});
    EXPECT_TRUE(std::ranges::all_of(loader.report(),
                                    [](const TensorReport& t) { return t.problem.empty(); }));
  }
}

}  // namespace
}  // namespace fovea::minimax_m3_vl
