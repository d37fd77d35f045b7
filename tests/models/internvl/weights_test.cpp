// The lists of tensors, and that the order of patches and the layer scales went into the weights.
#include "models/internvl/model.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "models/config_files.h"
#include "support/golden.h"

namespace fovea::internvl {
namespace {

constexpr std::int64_t kLlmWidth = 4096;

Config tower_300m(Format format) {
  return {.format = format, .qkv_bias = true, .llm_hidden_size = kLlmWidth};
}

Config tower_6b(Format format) {
  return {.format = format,
          .hidden_size = 3200,
          .num_hidden_layers = 45,
          .num_attention_heads = 25,
          .intermediate_size = 12800,
          .qk_normalization = true,
          .rms_norm = true,
          .llm_hidden_size = kLlmWidth};
}

/// Elements of the projector.
constexpr std::int64_t projector(std::int64_t joined) {
  return 2 * joined + kLlmWidth * (joined + 1) + kLlmWidth * (kLlmWidth + 1);
}

TEST(InternvlWeights, AreTheTensorsOfThePublishedTowers) {
  struct Case {
    Config config;
    std::size_t tensors;
    std::int64_t parameters;
  };
  for (const Case& c :
       {Case{tower_300m(Format::kChat), 4 + 24 * 14 + 6, 304012288 + projector(4096)},
        Case{tower_300m(Format::kNative), 4 + 24 * 18 + 6, 304012288 + projector(4096)},
        Case{tower_6b(Format::kChat), 4 + 45 * 13 + 6, 5536496000 + projector(12800)},
        Case{tower_6b(Format::kNative), 4 + 45 * 15 + 6, 5536496000 + projector(12800)}}) {
    const auto source = checkpoint::WeightSource::dummy(0);
    common::WeightLoader checker(source, "");
    const Weights w = load_weights(checker, c.config, {});
    EXPECT_EQ(checker.report().size(), c.tensors);
    EXPECT_EQ(checker.parameters(), c.parameters);
    EXPECT_EQ(w.position_embedding.shape, (Shape{1025, c.config.hidden_size}));
    EXPECT_EQ(w.projector.fc1.in_features, c.config.joined_width());
  }
}

TEST(InternvlWeights, LayersThatDoNotRunAreNotLoaded) {
  Config config = tower_300m(Format::kChat);
  config.num_hidden_layers = 23;  // select_layer -2
  const auto source = checkpoint::WeightSource::dummy(0);
  common::WeightLoader checker(source, "");
  EXPECT_EQ(load_weights(checker, config, {}).layers.size(), 23u);
}

TEST(InternvlWeights, AGoldenCheckpointHoldsThemAll) {
  for (const char* family : {"internvl", "internvl_chat"}) {
    for (const std::string& folder : test::golden_folders(family, "model.safetensors")) {
      SCOPED_TRACE(folder);
      const checkpoint::HfConfig files = checkpoint::read_hf_config(folder);
      const Format format =
          known_architecture(files) == "InternVLChatModel" ? Format::kChat : Format::kNative;
      const auto source = checkpoint::WeightSource::open(folder);
      common::WeightLoader checker(source, "");
      (void)load_weights(checker, parse_config(files, format), {});
      for (const TensorReport& tensor : checker.report()) {
        EXPECT_EQ(tensor.problem, "") << tensor.name;
      }
    }
  }
}

}  // namespace
}  // namespace fovea::internvl
