// The list of tensors of DeepSeek-VL.
#include "models/deepseek_vl/model.h"

#include <gtest/gtest.h>

namespace fovea::deepseek_vl {
namespace {

TEST(DeepseekVlWeights, AreTheTensorsOfThePublishedTower) {
  const Config c{.tower = {.hidden_size = 1024,
                           .num_hidden_layers = 24,
                           .num_attention_heads = 16,
                           .intermediate_size = 4096,
                           .view = {.side_px = 384, .patch_px = 16}},
                 .text_hidden_size = 2048};
  const auto source = checkpoint::WeightSource::dummy(0);
  common::WeightLoader checker(source, "");
  const Weights w = load_weights(checker, c, {});
  EXPECT_EQ(checker.report().size(), 3U + 24 * 16 + 2 + 4);
  const std::int64_t layer = 4 * 1024 + 4 * (1024 * 1024 + 1024) + 2 * 1024 * 4096 + 4096 + 1024;
  EXPECT_EQ(checker.parameters(),
            1024 * 769 + 576 * 1024 + 24 * layer + 2 * 1024 + 1025 * 2048 + 2049 * 2048);
  EXPECT_EQ(w.aligner.activation, ops::Activation::kGeluErf);
}

}  // namespace
}  // namespace fovea::deepseek_vl
