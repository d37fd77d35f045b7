// The lists of tensors of both formats.
#include "models/cohere_vision/model.h"

#include <gtest/gtest.h>

namespace fovea::cohere_vision {
namespace {

TEST(CohereVisionWeights, AreTheTensorsOfBothFormats) {
  for (const Format format : {Format::kCohere2, Format::kAya}) {
    const Config c{.format = format,
                   .tower = {.hidden_size = 1152,
                             .num_hidden_layers = 27,
                             .num_attention_heads = 16,
                             .intermediate_size = 4304,
                             .view = {.side_px = 512, .patch_px = 16, .merge = 2}},
                   .alignment_intermediate_size = 28672,
                   .text_hidden_size = 4096};
    const auto source = checkpoint::WeightSource::dummy(0);
    common::WeightLoader checker(source, "");
    const Weights w = load_weights(checker, c, {});
    EXPECT_EQ(checker.report().size(), 3U + 27 * 16 + 2 + 4);
    const std::int64_t layer = 4 * 1152 + 4 * (1152 * 1152 + 1152) + 2 * 1152 * 4304 + 4304 + 1152;
    const std::int64_t norm = 2 * (format == Format::kCohere2 ? 1152 : 4608);
    EXPECT_EQ(checker.parameters(),
              1152 * 769 + 1024 * 1152 + 27 * layer + norm + 4609 * 28672 + 14337 * 4096);
    EXPECT_EQ(w.norm.weight.shape[0], norm / 2);
    EXPECT_EQ(w.projector.gate_up.out_features, 28672);
    EXPECT_EQ(w.projector.down.in_features, 14336);
  }
}

}  // namespace
}  // namespace fovea::cohere_vision
