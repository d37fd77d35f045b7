// The list of tensors of CLIP: numbers are those of the modules of transformers 5.24.
#include <gtest/gtest.h>

#include "models/clip/model.h"

namespace fovea::clip {
namespace {

struct Count {
  std::size_t tensors;
  std::int64_t parameters;
  friend bool operator==(const Count&, const Count&) = default;
};

Count count(const Config& config, TowerOutput output) {
  const auto source = checkpoint::WeightSource::dummy(0);
  common::WeightLoader checker(source, "");
  (void)load_weights(checker, config, output, {});
  return {checker.report().size(), checker.parameters()};
}

TEST(ClipWeights, AreTheTensorsOfThePublishedTowers) {
  const Config small{.tower = {.view = {.side_px = 224, .patch_px = 32}}, .projection_dim = 512};
  EXPECT_EQ(count(small, TowerOutput::kVectors), (Count{200, 87'849'216}));
  const Config large{.tower = {.hidden_size = 1024,
                               .num_hidden_layers = 24,
                               .num_attention_heads = 16,
                               .intermediate_size = 4096,
                               .view = {.side_px = 336, .patch_px = 14}},
                     .projection_dim = 768};
  EXPECT_EQ(count(large, TowerOutput::kVectors), (Count{392, 304'293'888}));
}

TEST(ClipWeights, RowsNeedNothingOfTheVector) {
  const Config c{.tower = {.view = {.side_px = 224, .patch_px = 32}}, .projection_dim = 512};
  EXPECT_EQ(count(c, TowerOutput::kRows), (Count{197, 87'849'216 - 2 * 768 - 512 * 768}));
  EXPECT_EQ(count(c, TowerOutput::kUnitVectors), count(c, TowerOutput::kVectors));
}

}  // namespace
}  // namespace fovea::clip
