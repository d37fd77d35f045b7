// The list of tensors of Gemma 3, and the one in the norm.
#include "models/gemma3/model.h"

#include <gtest/gtest.h>

#include "device/cpu/cpu_device.h"
#include "models/config_files.h"
#include "ops/cpu/cpu_kernels.h"
#include "support/golden.h"

namespace fovea::gemma3 {
namespace {

TEST(Gemma3Weights, AreTheTensorsOfThePublishedTower) {
  Config c{.tower = {.hidden_size = 1152,
                     .num_hidden_layers = 27,
                     .num_attention_heads = 16,
                     .intermediate_size = 4304,
                     .view = {.side_px = 896, .patch_px = 14, .merge = 4}},
           .text_hidden_size = 2560};
  const auto source = checkpoint::WeightSource::dummy(0);
  common::WeightLoader checker(source, "");
  const Weights w = load_weights(checker, c, {});
  EXPECT_EQ(checker.report().size(), 3U + 27 * 16 + 2 + 2);
  const std::int64_t layer = 4 * 1152 + 4 * (1152 * 1152 + 1152) + 2 * 1152 * 4304 + 4304 + 1152;
  EXPECT_EQ(checker.parameters(),
            1152 * 589 + 4096 * 1152 + 27 * layer + 2 * 1152 + 1152 + 1152 * 2560);
  EXPECT_EQ(w.projection.in_features, 1152);
  EXPECT_FALSE(w.projection.has_bias);
}

TEST(Gemma3Weights, TheNormMultipliesByOneMore) {
  const std::vector<std::string> folders = test::golden_folders("gemma3", "model.safetensors");
  if (folders.empty()) GTEST_SKIP() << "gemma3 is not in the repository: see FOVEA_GOLDEN_DIR";
  for (const std::string& folder : folders) {
    const auto source = checkpoint::WeightSource::open(folder);
    const auto kernels = make_cpu_kernels(detect_cpu_isa());
    const auto device = make_cpu_device(1, *kernels);
    const auto stream = device->create_stream();
    common::WeightLoader loader(source, "", *device, *stream);
    const Config c = parse_config(checkpoint::read_hf_config(folder));
    const Weights weights = load_weights(loader, c, {});
    const Tensor stored =
        loader.f32("multi_modal_projector.mm_soft_emb_norm.weight", {c.tower.hidden_size});
    stream->synchronize();
    for (std::int64_t i = 0; i < c.tower.hidden_size; ++i) {
      EXPECT_EQ(weights.pooled_norm.weight.view().as<float>()[i], 1 + stored.view().as<float>()[i]);
    }
  }
}

}  // namespace
}  // namespace fovea::gemma3
