// The lists of tensors of the published towers.
#include <gtest/gtest.h>

#include "models/llava/model.h"

namespace fovea::llava {
namespace {

TEST(LlavaWeights, AreTheTensorsOfClip) {
  for (const Format format : {Format::kLlava, Format::kNext}) {
    const Config c{.format = format,
                   .kind = Tower::kClip,
                   .tower = {.hidden_size = 1024,
                             .num_hidden_layers = 23,
                             .num_attention_heads = 16,
                             .intermediate_size = 4096,
                             .view = {.side_px = 336, .patch_px = 14}},
                   .text_hidden_size = 4096};
    const auto source = checkpoint::WeightSource::dummy(0);
    common::WeightLoader checker(source, "");
    const Weights w = load_weights(checker, c, {});
    const bool has_newline = format == Format::kNext;
    EXPECT_EQ(checker.report().size(), has_newline ? 378U : 377U);
    EXPECT_EQ(checker.parameters(), 311888896 + (has_newline ? 4096 : 0))
        << "of the modules of transformers 5.24 that run";
    const auto& tower = std::get<common::ClipTower>(w.tower);
    EXPECT_FALSE(tower.patch_embedding.proj.has_bias);
    EXPECT_EQ(tower.position_embedding.shape, (Shape{577, 1024}));
  }
}

TEST(LlavaWeights, AreTheTensorsOfSiglip) {
  const Config c{.format = Format::kOnevision,
                 .kind = Tower::kSiglip,
                 .tower = {.hidden_size = 1152,
                           .num_hidden_layers = 26,
                           .num_attention_heads = 16,
                           .intermediate_size = 4304,
                           .view = {.side_px = 384, .patch_px = 14}},
                 .text_hidden_size = 3584};
  const auto source = checkpoint::WeightSource::dummy(0);
  common::WeightLoader checker(source, "");
  const Weights w = load_weights(checker, c, {});
  EXPECT_EQ(checker.report().size(), 424U);
  EXPECT_EQ(checker.parameters(), 414730016) << "of the modules of transformers 5.24 that run";
  EXPECT_TRUE(std::holds_alternative<common::SiglipTower>(w.tower));
}

}  // namespace
}  // namespace fovea::llava
