// The list of tensors of ERNIE-4.5-VL.
#include <gtest/gtest.h>

#include <algorithm>

#include "models/ernie4_5_vl/model.h"
#include "support/golden.h"

namespace fovea::ernie4_5_vl {
namespace {

TEST(Ernie4_5VlWeights, AreTheTensorsOfThePublishedTower) {
  const auto source = checkpoint::WeightSource::dummy(0);
  common::WeightLoader loader(source, "");
  (void)load_weights(loader, Config{}, {});
  EXPECT_EQ(loader.report().size(), 1u + 32 * 12 + 2 + 2 * 6 + 3);
  const std::int64_t block = 4 * 1280 + 4 * 1280 * 1280 + 4 * 1280 + 2 * 1280 * 5120 + 5120 + 1280;
  const std::int64_t spatial = 2 * (5120 * 5120 + 5120) + 2 * 5120;
  const std::int64_t temporal = spatial + 5120 * 5120;
  EXPECT_EQ(loader.parameters(),
            588 * 1280 + 32 * block + 2 * 1280 + spatial + temporal + 5120 * 2560 + 2 * 2560);
}

TEST(Ernie4_5VlWeights, AGoldenCheckpointHoldsThemAll) {
  for (const std::string& folder : test::golden_folders("ernie4_5_vl", "model.safetensors")) {
    const auto source = checkpoint::WeightSource::open(folder);
    common::WeightLoader loader(source, "");
    (void)load_weights(loader, parse_config(checkpoint::read_hf_config(folder)), {});
    EXPECT_TRUE(std::ranges::all_of(loader.report(),
                                    [](const TensorReport& t) { return t.problem.empty(); }));
  }
}

}  // namespace
}  // namespace fovea::ernie4_5_vl
