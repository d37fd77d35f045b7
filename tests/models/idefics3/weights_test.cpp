// The list of tensors, and the positions of views of another size than the tower's.
#include <gtest/gtest.h>

#include <vector>

#include "models/idefics3/model.h"

namespace fovea::idefics3 {
namespace {

TEST(Idefics3Weights, AreTheTensorsOfThePublishedTower) {
  const Config c{.tower = {.hidden_size = 1152,
                           .num_hidden_layers = 27,
                           .num_attention_heads = 16,
                           .intermediate_size = 4304,
                           .view = {.side_px = 384, .patch_px = 14, .merge = 3}},
                 .position_side = 27,
                 .text_hidden_size = 2048};
  const auto source = checkpoint::WeightSource::dummy(0);
  common::WeightLoader checker(source, "");
  const Weights w = load_weights(checker, c, {});
  EXPECT_EQ(checker.report().size(), 438U);
  EXPECT_EQ(checker.parameters(), 434220912) << "of the module of transformers 5.24";
  EXPECT_EQ(w.modality_projection.in_features, 9 * 1152);
  EXPECT_FALSE(w.modality_projection.has_bias);
}

TEST(Idefics3Weights, PositionsOfAnotherGridAreThoseOfTheirPlace) {
  const auto entries = [](std::int64_t patches, std::int64_t table_side) {
    std::vector<std::int64_t> result;
    for (std::int64_t i = 0; i < patches; ++i) {
      result.push_back(position_of(i, patches, table_side));
    }
    return result;
  };
  EXPECT_EQ(entries(4, 4), (std::vector<std::int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(entries(3, 4), (std::vector<std::int64_t>{0, 1, 2}));
  EXPECT_EQ(entries(2, 4), (std::vector<std::int64_t>{0, 2}));
  EXPECT_EQ(entries(6, 4), (std::vector<std::int64_t>{0, 0, 1, 2, 2, 3}));
}

}  // namespace
}  // namespace fovea::idefics3
