// The list of tensors of Llama 4, and the order of its positions.
#include "models/llama4/model.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "device/cpu/cpu_device.h"
#include "ops/cpu/cpu_kernels.h"
#include "support/golden.h"

namespace fovea::llama4 {
namespace {

Config published() {
  Config c;
  c.hidden_size = 1408;
  c.vision_output_dim = 4096;
  c.view.side_px = 336;
  return c;
}

TEST(Llama4Weights, AreTheTensorsOfThePublishedTower) {
  const auto source = checkpoint::WeightSource::dummy(0);
  common::WeightLoader loader(source, "");
  (void)load_weights(loader, published(), {});
  EXPECT_EQ(loader.report().size(), 3u + 4 + 34 * 16 + 3);
  const std::int64_t layer = 4 * 1408 + 4 * (1408 * 1408 + 1408) + 2 * 1408 * 5632 + 5632 + 1408;
  EXPECT_EQ(loader.parameters(), 588 * 1408 + 1408 + 577 * 1408 + 4 * 1408 + 34 * layer +
                                     4096 * 5632 + 4096 * 4096 + 5120 * 4096);
}

TEST(Llama4Weights, PositionsFollowThePatchesOfTokens) {
  for (const std::string& folder : test::golden_folders("llama4", "model.safetensors")) {
    const auto source = checkpoint::WeightSource::open(folder);
    const auto kernels = make_cpu_kernels(detect_cpu_isa());
    const auto device = make_cpu_device(1, *kernels);
    const auto stream = device->create_stream();
    common::WeightLoader loader(source, "", *device, *stream);
    const Config c = parse_config(checkpoint::read_hf_config(folder));
    const Weights weights = load_weights(loader, c, {});
    const Tensor stored =
        loader.f32("vision_model.positional_embedding_vlm", {c.view.patches() + 1, c.hidden_size});
    stream->synchronize();
    const auto first = [&](const Tensor& table, std::int64_t row) {
      return table.view().as<float>()[row * c.hidden_size];
    };
    const std::int64_t grid = c.view.grid();
    EXPECT_EQ(first(weights.positional_embedding, 1), first(stored, 1));
    EXPECT_EQ(first(weights.positional_embedding, 2), first(stored, grid));
    EXPECT_EQ(first(weights.positional_embedding, 3), first(stored, grid + 1));
    EXPECT_EQ(first(weights.positional_embedding, 4), first(stored, 2));
    EXPECT_EQ(first(weights.positional_embedding, grid * grid), first(stored, grid * grid));
  }
}

TEST(Llama4Weights, AGoldenCheckpointHoldsThemAll) {
  for (const std::string& folder : test::golden_folders("llama4", "model.safetensors")) {
    const auto source = checkpoint::WeightSource::open(folder);
    common::WeightLoader loader(source, "");
    (void)load_weights(loader, parse_config(checkpoint::read_hf_config(folder)), {});
    EXPECT_TRUE(std::ranges::all_of(loader.report(),
                                    [](const TensorReport& t) { return t.problem.empty(); }));
  }
}

}  // namespace
}  // namespace fovea::llama4
