// The list of tensors of Molmo2, and the rows of its video.
#include <gtest/gtest.h>

#include "models/golden_video.h"
#include "models/molmo2/model.h"
#include "support/golden.h"

namespace fovea::molmo2 {
namespace {

TEST(Molmo2Weights, AreTheTensorsOfThePublishedTower) {
  const auto source = checkpoint::WeightSource::dummy(0);
  common::WeightLoader loader(source, "");
  Config c;
  c.adapter_intermediate_size = 12288;
  c.text_hidden_size = 4096;
  (void)load_weights(loader, c, {});
  EXPECT_EQ(loader.report().size(), 3u + 25 * 16 + 8 + 3);
  const std::int64_t block = 4 * 1152 + 4 * (1152 * 1152 + 1152) + 2 * 1152 * 4304 + 4304 + 1152;
  const std::int64_t pooling = 3 * (2304 * 1152 + 1152) + 1152 * 1152 + 1152;
  EXPECT_EQ(loader.parameters(),
            589 * 1152 + 729 * 1152 + 25 * block + pooling + 2 * 12288 * 1152 + 12288 * 4096);
}

TEST(Molmo2Weights, AGoldenVideoHasTheRowsOfTheReference) {
  const auto folders = test::golden_folders("molmo2", "golden.safetensors");
  if (folders.empty()) GTEST_SKIP() << "no folder molmo2; set FOVEA_GOLDEN_DIR";
  for (const std::string& folder : folders) test::expect_golden_video(folder, 1e-5);
}

}  // namespace
}  // namespace fovea::molmo2
