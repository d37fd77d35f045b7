// Fetching tensors by name: variants of the wild, complaints, and what reaches the device.
#include "models/blocks/weight_loader.h"

#include <gtest/gtest.h>

#include <cstring>

#include "checkpoint/safetensors.h"
#include "device/arena.h"
#include "device/cpu/cpu_device.h"
#include "ops/context.h"
#include "ops/cpu/cpu_kernels.h"
#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace fovea::blocks {
namespace {

class WeightLoaderTest : public ::testing::Test {
 protected:
  /// Adds a float tensor of ascending values that start at `first`.
  void add(const std::string& name, const Shape& shape, float first) {
    std::vector<float>& values = storage_.emplace_back(static_cast<std::size_t>(shape.elements()));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = first + static_cast<float>(i);
    tensors_.push_back({name, {nullptr, DType::kF32, shape}});
  }

  checkpoint::WeightSource source() {
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      tensors_[i].view.data = reinterpret_cast<const std::byte*>(storage_[i].data());
    }
    checkpoint::write_safetensors(folder_ / "model.safetensors", tensors_, {});
    return checkpoint::WeightSource::open(folder_.path());
  }

  /// y = W x + b for the unit vectors x: the columns of W, and b.
  std::vector<float> apply(const ops::PackedLinear& layer, const std::vector<float>& x) {
    std::vector<float> y(static_cast<std::size_t>(layer.out_features));
    Arena arena(nullptr, 0);
    ExecContext ctx{*stream_, *kernels_, arena, *stream_};
    ops::linear(
        ctx,
        {.x = {reinterpret_cast<const std::byte*>(x.data()), DType::kF32, {1, layer.in_features}},
         .weight = layer,
         .out = {reinterpret_cast<std::byte*>(y.data()), DType::kF32, {1, layer.out_features}}});
    return y;
  }

  test::TemporaryDirectory folder_;
  std::vector<checkpoint::OutputTensor> tensors_;
  std::vector<std::vector<float>> storage_;
  std::unique_ptr<Kernels> kernels_ = make_cpu_kernels(detect_cpu_isa());
  std::unique_ptr<Device> device_ = make_cpu_device(1, *kernels_);
  std::unique_ptr<Stream> stream_ = device_->create_stream();
};

TEST_F(WeightLoaderTest, FusedAndSplitProjectionsGiveTheSameLayer) {
  add("fused.qkv.weight", {6, 2}, 0);
  add("fused.qkv.bias", {6}, 100);
  const char* const parts[] = {"split.q", "split.k", "split.v"};
  for (int p = 0; p < 3; ++p) {
    add(std::string(parts[p]) + ".weight", {2, 2}, static_cast<float>(4 * p));
    add(std::string(parts[p]) + ".bias", {2}, static_cast<float>(100 + 2 * p));
  }
  const checkpoint::WeightSource weights = source();
  WeightLoader loader(weights, "", *device_, *stream_);
  const std::vector<float> x{1, 10};
  EXPECT_EQ(apply(loader.qkv("fused", 2), x), apply(loader.qkv("split", 2), x));
  EXPECT_EQ(apply(loader.qkv("fused", 2), x), (std::vector<float>{110, 133, 156, 179, 202, 225}));
}

TEST_F(WeightLoaderTest, ConvolutionWeightsAreReadAsMatrices) {
  add("conv.weight", {2, 3, 1, 1}, 1);
  const checkpoint::WeightSource weights = source();
  WeightLoader loader(weights, "", *device_, *stream_);
  const ops::PackedLinear layer = loader.linear("conv", 2, {3, 1, 1}, WeightLoader::Bias::kNo);
  EXPECT_EQ(layer.in_features, 3);
  EXPECT_EQ(apply(layer, {1, 0, 0}), (std::vector<float>{1, 4}));
}

TEST_F(WeightLoaderTest, CheckingCollectsEveryProblem) {
  add("tower.norm.weight", {4}, 1);
  add("tower.fc.weight", {3, 4}, 0);
  const checkpoint::WeightSource weights = source();
  WeightLoader checker(weights, "tower.");
  (void)checker.layer_norm("norm", 4);
  const ops::PackedLinear layer = checker.linear("fc", 5, {4});
  EXPECT_EQ(layer.out_features, 5) << "shapes are those asked for";
  EXPECT_EQ(checker.parameters(), 4 + 4 + 20 + 5);
  try {
    checker.throw_if_incomplete();
    FAIL();
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
    EXPECT_NE(text.find("3 of 4 tensors"), std::string::npos) << text;
    EXPECT_NE(text.find("tower.norm.bias missing, expected [4]"), std::string::npos) << text;
    EXPECT_NE(text.find("tower.fc.weight has shape [3, 4]"), std::string::npos) << text;
    EXPECT_NE(text.find("tower.fc.bias missing"), std::string::npos) << text;
  }
}

TEST_F(WeightLoaderTest, ALongListOfProblemsIsCounted) {
  add("tower.other", {1}, 0);
  const checkpoint::WeightSource weights = source();
  WeightLoader checker(weights, "tower.");
  for (const char* name : {"a", "b", "c", "d", "e"}) (void)checker.f32(name, {1});
  test::expect_error(ErrorCode::kNotFound,
                     folder_.path() +
                         ": checkpoint does not fit its config.json: 5 of 5 tensors are missing or "
                         "misshapen: tower.a missing, expected [1]; tower.b missing, expected [1]; "
                         "tower.c missing, expected [1] and 2 more; `fovea inspect " +
                         folder_.path() + "` lists them",
                     [&] { checker.throw_if_incomplete(); });
}

TEST_F(WeightLoaderTest, DummyWeightsAlwaysFit) {
  const auto weights = checkpoint::WeightSource::dummy(3);
  WeightLoader checker(weights, "any.");
  (void)checker.layer_norm("norm", 4);
  EXPECT_NO_THROW(checker.throw_if_incomplete());
  WeightLoader loader(weights, "any.", *device_, *stream_);
  EXPECT_EQ(apply(loader.linear("fc", 5, {4}), {1, 2, 3, 4}).size(), 5u);
}

}  // namespace
}  // namespace fovea::blocks
