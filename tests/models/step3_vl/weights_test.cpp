// The list of tensors, and the two that change on their way to the device.
#include "models/step3_vl/model.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "device/cpu/cpu_device.h"
#include "media/normalize.h"
#include "models/common/pixel_levels.h"
#include "ops/cpu/cpu_kernels.h"
#include "support/golden.h"

namespace fovea::step3_vl {
namespace {

TEST(Step3VlWeights, AreTheTensorsOfThePublishedSizes) {
  const auto source = checkpoint::WeightSource::dummy(0);
  common::WeightLoader loader(source, "");
  Config config;
  config.intermediate_size = 15360;  // the 5 B encoder that the model is advertised with
  const Weights w = load_weights(loader, config);
  EXPECT_EQ(loader.report().size(), 4u + 63 * 12 + 4 + 2);
  EXPECT_EQ(loader.parameters(), 4675381760);
  EXPECT_EQ(w.positions[kGlobal].shape, (Shape{2708, 1792}));
  EXPECT_EQ(w.positions[kLocal].shape, (Shape{1300, 1792}));
}

TEST(Step3VlWeights, AGoldenCheckpointHoldsThemAll) {
  for (const std::string& folder : test::golden_folders("step3_vl", "model.safetensors")) {
    const auto source = checkpoint::WeightSource::open(folder);
    common::WeightLoader loader(source, "");
    const Weights w = load_weights(loader, parse_config(checkpoint::read_hf_config(folder)));
    for (const TensorReport& tensor : loader.report()) EXPECT_EQ(tensor.problem, "") << tensor.name;
    EXPECT_FALSE(w.vit_large_projector.has_bias) << "the tensor decides";
  }
}

class Step3VlLoaded : public ::testing::Test {
 protected:
  std::unique_ptr<Kernels> kernels_ = make_cpu_kernels(CpuIsa::kPortable, 1);
  std::unique_ptr<Device> device_ = make_cpu_device(1, *kernels_);
  std::unique_ptr<Stream> stream_ = device_->create_stream();
  checkpoint::WeightSource source_ =
      checkpoint::WeightSource::open(test::golden_folder("step3_vl", "model.safetensors"));
  common::WeightLoader loader_{source_, "", *device_, *stream_};
  Weights weights_ =
      load_weights(loader_, parse_config(checkpoint::read_hf_config(
                                test::golden_folder("step3_vl", "model.safetensors"))));

  std::vector<float> embed(const std::vector<float>& x) {
    std::vector<float> y(static_cast<std::size_t>(weights_.patch_embedding.proj.out_features));
    Arena arena(nullptr, 0);
    ExecContext ctx{*stream_, *kernels_, arena, *stream_};
    const auto cols = static_cast<std::int64_t>(x.size());
    const auto rows = static_cast<std::int64_t>(y.size());
    ops::linear(ctx, {.x = {reinterpret_cast<const std::byte*>(x.data()), DType::kF32, {1, cols}},
                      .weight = weights_.patch_embedding.proj,
                      .out = {reinterpret_cast<std::byte*>(y.data()), DType::kF32, {1, rows}}});
    return y;
  }
};

TEST_F(Step3VlLoaded, LevelBytesGiveWhatTheNormalisedLevelGives) {
  // One patch of pixels of level 100 + 37 / 256 + 201 / 65536.
  constexpr int kBytes[] = {100, 37, 201};
  constexpr std::size_t kArea = 14 * 14;
  const media::NormalizeTable table = common::level_table();
  const ConstTensorView weight =
      source_.tensor("vision_model.embeddings.patch_embedding.weight", {128, 3, 14, 14});
  std::vector<float> w(128 * 3 * kArea);
  widen_to_f32(weight.dtype, weight.data, w.data(), w.size());
  const ConstTensorView bias =
      source_.tensor("vision_model.embeddings.patch_embedding.bias", {128});
  std::vector<float> b(128);
  widen_to_f32(bias.dtype, bias.data, b.data(), b.size());
  std::vector<float> x;
  double normalised[3];
  for (std::size_t c = 0; c < 3; ++c) {
    for (const int byte : kBytes) {
      x.insert(x.end(), kArea, table[c][static_cast<std::size_t>(byte)]);
    }
    const double level = kBytes[0] + kBytes[1] / 256.0 + kBytes[2] / 65536.0;
    normalised[c] = (level / 255 - double{Config::kMean[c]}) / double{Config::kStd[c]};
  }
  const std::vector<float> got = embed(x);
  for (std::size_t row = 0; row < got.size(); ++row) {
    auto want = double{b[row]};
    for (std::size_t i = 0; i < 3 * kArea; ++i) {
      want += double{w[row * 3 * kArea + i]} * normalised[i / kArea];
    }
    EXPECT_NEAR(got[row], want, 1e-5) << row;
  }
}

TEST_F(Step3VlLoaded, TheClassTokenAndItsPositionComeFourTimes) {
  stream_->synchronize();
  EXPECT_EQ(weights_.class_rows.shape, (Shape{4, 128}));
  for (const Tensor* table : {&weights_.class_rows, &weights_.positions[kLocal]}) {
    const float* const rows = table->view().as<float>();
    for (std::int64_t row = 1; row < 4; ++row) {
      EXPECT_TRUE(std::equal(rows, rows + 128, rows + row * 128)) << row;
    }
  }
}

}  // namespace
}  // namespace fovea::step3_vl
