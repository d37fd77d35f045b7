// The lists of tensors of the three architectures, and what loading makes of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "checkpoint/safetensors.h"
#include "device/cpu/cpu_device.h"
#include "models/mistral3/model.h"
#include "ops/cpu/cpu_kernels.h"
#include "support/golden.h"

namespace fovea::mistral3 {
namespace {

/// The tower of Mistral Small 3.1, Ministral 3 and LightOnOCR.
Config published(Format format, std::int64_t text_hidden_size) {
  Config c;
  c.format = format;
  c.grid.patch_size = 14;
  c.text_hidden_size = text_hidden_size;
  return c;
}

constexpr std::int64_t kWidth = 1024;
constexpr std::int64_t kBlock = 2 * kWidth + 4 * kWidth * kWidth + 3 * kWidth * 4096;
constexpr std::int64_t kTower = 588 * kWidth + kWidth + 24 * kBlock;

TEST(Mistral3Weights, AreTheTensorsOfThePublishedTower) {
  for (const Format format : {Format::kMistral3, Format::kLightOnOcr}) {
    const auto source = checkpoint::WeightSource::dummy(0);
    common::WeightLoader loader(source, "");
    const Weights weights = load_weights(loader, published(format, 5120), {});
    EXPECT_EQ(weights.blocks.size(), 24u);
    EXPECT_TRUE(weights.merger.has_value());
    EXPECT_EQ(loader.report().size(), 2u + 24 * 9 + 4);
    const std::int64_t projector = kWidth + 4 * kWidth * kWidth + 5120 * kWidth + 5120 * 5120;
    EXPECT_EQ(loader.parameters(), kTower + projector);
    const std::string& first = loader.report().front().name;
    EXPECT_EQ(first, format == Format::kMistral3 ? "vision_tower.patch_conv.weight"
                                                 : "vision_encoder.patch_conv.weight");
  }
}

TEST(Mistral3Weights, OfPixtralHaveNoMerger) {
  const auto source = checkpoint::WeightSource::dummy(0);
  common::WeightLoader loader(source, "");
  Config c = published(Format::kPixtral, 5120);
  c.grid = {.patch_size = 16, .spatial_merge_size = 1, .temporal_patch_size = 1};
  c.multimodal_projector_bias = true;
  EXPECT_FALSE(load_weights(loader, c, {}).merger.has_value());
  EXPECT_EQ(loader.report().size(), 2u + 24 * 9 + 4);
  EXPECT_EQ(loader.parameters(),
            kTower + (768 - 588) * kWidth + 5120 * kWidth + 5120 + 5120 * 5120 + 5120);
}

TEST(Mistral3Weights, FrequenciesOfRowsAndColumnsAlternate) {
  const auto kernels = make_cpu_kernels(CpuIsa::kPortable, 1);
  const auto device = make_cpu_device(1, *kernels);
  const auto stream = device->create_stream();
  const auto source = checkpoint::WeightSource::dummy(0);
  common::WeightLoader loader(source, "", *device, *stream);
  Config c;
  c.hidden_size = 16;
  c.num_attention_heads = 1;
  c.intermediate_size = 8;
  c.num_hidden_layers = 1;
  c.text_hidden_size = 8;
  const Weights weights = load_weights(loader, c, {});
  stream->synchronize();
  ASSERT_EQ(weights.inv_freq.shape, Shape{8});
  const auto* const got = weights.inv_freq.view().as<float>();
  const std::vector<double> want{1,
                                 1e-1,
                                 1e-2,
                                 1e-3,
                                 std::pow(10, -.5),
                                 std::pow(10, -1.5),
                                 std::pow(10, -2.5),
                                 std::pow(10, -3.5)};
  for (std::size_t j = 0; j < want.size(); ++j) EXPECT_NEAR(got[j], want[j], 3e-7 * want[j]) << j;
}

TEST(Mistral3Weights, AGoldenCheckpointHoldsThemAll) {
  const auto folders = test::golden_folders("mistral3", "model.safetensors");
  if (folders.empty()) GTEST_SKIP() << "no folder mistral3; set FOVEA_GOLDEN_DIR";
  for (const std::string& folder : folders) {
    const auto source = checkpoint::WeightSource::open(folder);
    common::WeightLoader loader(source, "");
    (void)load_weights(loader, parse_config(checkpoint::read_hf_config(folder)), {});
    EXPECT_TRUE(std::ranges::all_of(loader.report(),
                                    [](const TensorReport& t) { return t.problem.empty(); }));
  }
}

}  // namespace
}  // namespace fovea::mistral3
