// The list of tensors of PaliGemma.
#include "models/paligemma/model.h"

#include <gtest/gtest.h>

namespace fovea::paligemma {
namespace {

TEST(PaliGemmaWeights, AreTheTensorsOfThePublishedTower) {
  const Config c{.tower = {.hidden_size = 1152,
                           .num_hidden_layers = 27,
                           .num_attention_heads = 16,
                           .intermediate_size = 4304,
                           .view = {.side_px = 224, .patch_px = 14}}};
  const auto source = checkpoint::WeightSource::dummy(0);
  common::WeightLoader checker(source, "");
  const Weights w = load_weights(checker, c, {});
  EXPECT_EQ(checker.report().size(), 3U + 27 * 16 + 2 + 2);
  const std::int64_t layer = 4 * 1152 + 4 * (1152 * 1152 + 1152) + 2 * 1152 * 4304 + 4304 + 1152;
  EXPECT_EQ(checker.parameters(), 1152 * 589 + 256 * 1152 + 27 * layer + 2 * 1152 + 1153 * 2048);
  EXPECT_EQ(w.projection.out_features, 2048);
}

}  // namespace
}  // namespace fovea::paligemma
