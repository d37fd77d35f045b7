// Fetching tensors by name: variants that checkpoints use, complaints, and what reaches the device.
#include "models/common/weight_loader.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "checkpoint/safetensors.h"
#include "device/cpu/cpu_device.h"
#include "fovea/tower/device/arena.h"
#include "fovea/tower/ops/context.h"
#include "models/common/blocks.h"
#include "models/common/rope.h"
#include "ops/cpu/cpu_kernels.h"
#include "support/expect_error.h"
#include "support/temporary_directory.h"

namespace fovea::common {
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

TEST_F(WeightLoaderTest, BlocksFromTheFourthOnAreLoadedInTheirFormat) {
  add("layer.weight", {16, 16}, 0);
  const checkpoint::WeightSource weights = source();
  WeightLoader loader(weights, "", *device_, *stream_, quantization_plan(Quantization::kFp8));
  const auto load = [&] { (void)loader.linear("layer", 16, {16}, WeightLoader::Bias::kNo); };
  load();
  for (std::int64_t block = 0; block < 3; ++block) {
    const auto scope = loader.block({.index = block, .count = 5});
    load();
  }
  {
    const auto scope = loader.block({.index = 3, .count = 5});  // a CPU has no kernels for it
    test::expect_error(ErrorCode::kUnsupported, "compute capability 9.0 (Hopper)", load);
  }
  load();
}

TEST_F(WeightLoaderTest, Int8IsTheFormatOfAllBlocksAndOfNothingElse) {
  add("layer.weight", {16, 16}, 0);
  const checkpoint::WeightSource weights = source();
  WeightLoader loader(weights, "", *device_, *stream_, quantization_plan(Quantization::kInt8));
  const auto dtype = [&] {
    return loader.linear("layer", 16, {16}, WeightLoader::Bias::kNo).dtype;
  };
  EXPECT_EQ(dtype(), DType::kF32) << "the patch embedding";
  {
    const auto scope = loader.block({.index = 0, .count = 5});
    EXPECT_EQ(dtype(), DType::kI8);
  }
  EXPECT_EQ(dtype(), DType::kF32) << "a merger";
}

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

TEST_F(WeightLoaderTest, SharedHeadsOfKAndVAreRepeatedForTheHeadsOfQ) {
  constexpr std::int64_t kWidth = 8;  // four heads of q, two of k and of v
  add("attn.qkv.weight", {16, kWidth}, 0);
  add("attn.qkv.bias", {16}, 1000);
  const checkpoint::WeightSource weights = source();
  WeightLoader loader(weights, "", *device_, *stream_);
  std::vector<float> want;
  for (const int row : {0,  1,  2,  3,  4,  5,  6,  7,      // q
                        8,  9,  8,  9,  10, 11, 10, 11,     // k
                        12, 13, 12, 13, 14, 15, 14, 15}) {  // v
    want.push_back(static_cast<float>(8 * row + 1000 + row));
  }
  const std::vector<float> x{1, 0, 0, 0, 0, 0, 0, 0};
  EXPECT_EQ(apply(loader.grouped_qkv("attn", kWidth, 4, 2), x), want);

  WeightLoader checker(weights, "");
  EXPECT_EQ(checker.grouped_qkv("attn", kWidth, 4, 2).out_features, 3 * kWidth);
  EXPECT_EQ(checker.report().front().problem, "");
}

TEST_F(WeightLoaderTest, SharedHeadsOfThreeLayersAreThoseOfOne) {
  constexpr std::int64_t kWidth = 8;
  add("one.qkv.weight", {16, kWidth}, 0);
  add("one.qkv.bias", {16}, 1000);
  add("attn.q_proj.weight", {8, kWidth}, 0);
  add("attn.k_proj.weight", {4, kWidth}, 64);
  add("attn.v_proj.weight", {4, kWidth}, 96);
  add("attn.q_proj.bias", {8}, 1000);
  add("attn.k_proj.bias", {4}, 1008);
  add("attn.v_proj.bias", {4}, 1012);
  const checkpoint::WeightSource weights = source();
  WeightLoader loader(weights, "", *device_, *stream_);
  const std::vector<float> x{1, 2, 3, 4, 5, 6, 7, 8};
  EXPECT_EQ(apply(loader.grouped_qkv_of_three("attn", kWidth, 4, 2), x),
            apply(loader.grouped_qkv("one", kWidth, 4, 2), x));

  WeightLoader checker(weights, "");
  EXPECT_EQ(checker.grouped_qkv_of_three("attn", kWidth, 4, 2).out_features, 3 * kWidth);
  ASSERT_EQ(checker.report().size(), 6u);
  for (const TensorReport& tensor : checker.report()) EXPECT_EQ(tensor.problem, "") << tensor.name;
  EXPECT_EQ(checker.parameters(), 16 * kWidth + 16);
}

TEST_F(WeightLoaderTest, RowsOfQAndKAreLoadedInTheOrderOfTheHalves) {
  constexpr std::int64_t kWidth = 8;  // two heads of 4
  add("fused.wqkv.weight", {3 * kWidth, kWidth}, 0);
  add("fused.wqkv.bias", {3 * kWidth}, 1000);
  const char* const parts[] = {"split.q_proj", "split.k_proj", "split.v_proj"};
  for (int p = 0; p < 3; ++p) {
    add(std::string(parts[p]) + ".weight", {kWidth, kWidth}, static_cast<float>(64 * p));
    add(std::string(parts[p]) + ".bias", {kWidth}, static_cast<float>(1000 + 8 * p));
  }
  const checkpoint::WeightSource weights = source();
  WeightLoader loader(weights, "", *device_, *stream_);
  const RowOrder order{2, 0, 3, 1};  // pairs 1 and 0
  const std::vector<float> x{1, 0, 0, 0, 0, 0, 0, 0};
  const std::vector<float> fused = apply(loader.qkv({"fused.wqkv"}, kWidth, order), x);
  std::vector<float> want;
  for (const int row : {2,  0,  3,  1,  6,  4,  7,  5, 10, 8, 11, 9, 14, 12, 15, 13,  // q and k
                        16, 17, 18, 19, 20, 21, 22, 23}) {
    want.push_back(static_cast<float>(8 * row + 1000 + row));
  }
  EXPECT_EQ(fused, want);
  EXPECT_EQ(apply(loader.qkv({parts[0], parts[1], parts[2]}, kWidth, order), x), want);
  WeightLoader checker(weights, "");
  EXPECT_EQ(checker.qkv({"fused.wqkv"}, kWidth, order).out_features, 3 * kWidth);
  EXPECT_EQ(checker.report().front().problem, "");
}

TEST_F(WeightLoaderTest, FusedLayersKeepTheOrderOfTheirNames) {
  add("one.weight", {1, 2}, 1);
  add("two.weight", {1, 2}, 3);
  const checkpoint::WeightSource weights = source();
  WeightLoader loader(weights, "", *device_, *stream_);
  const auto fused = [&](const std::vector<std::string>& names) {
    return apply(loader.fused(names, 1, {2}, WeightLoader::Bias::kNo), {1, 10});
  };
  EXPECT_EQ(fused({"one", "two"}), (std::vector<float>{21, 43}));
  EXPECT_EQ(fused({"two", "one"}), (std::vector<float>{43, 21}));
}

TEST_F(WeightLoaderTest, AScaleMultipliesFeaturesAndTheirBias) {
  add("fc.weight", {2, 2}, 1);
  add("fc.bias", {2}, 100);
  add("scale", {2}, 3);
  const checkpoint::WeightSource weights = source();
  WeightLoader loader(weights, "", *device_, *stream_);
  EXPECT_EQ(apply(loader.scaled_linear("fc", "scale", 2, 2), {1, 10}),
            (std::vector<float>{3 * 121, 4 * 144}));
  WeightLoader checker(weights, "");
  EXPECT_EQ(checker.scaled_linear("fc", "scale", 2, 2).in_features, 2);
  EXPECT_EQ(checker.parameters(), 4 + 2 + 2);
}

TEST_F(WeightLoaderTest, BlocksTakeTheLayerScalesThatAreStored) {
  for (const std::string block : {"b.0.", "b.1."}) {
    for (const char* name : {"norm1", "norm2", "attn.proj", "mlp.fc1", "mlp.fc2"}) {
      const bool is_norm = std::string_view(name).starts_with("norm");
      add(block + name + ".weight", is_norm ? Shape{2} : Shape{2, 2}, 1);
      add(block + name + ".bias", {2}, 100);
    }
    add(block + "attn.qkv.weight", {6, 2}, 1);
    add(block + "attn.qkv.bias", {6}, 1);
  }
  add("b.1.ls1", {2}, 3);
  add("b.1.ls2", {2}, 5);
  const checkpoint::WeightSource weights = source();
  WeightLoader loader(weights, "", *device_, *stream_);
  const BlockShape shape{.hidden_size = 2, .intermediate_size = 2, .num_attention_heads = 1};
  const BlockSequence all = load_blocks(loader, "b.", {.scale1 = "ls1", .scale2 = "ls2"}, shape, 2);
  using Row = std::vector<float>;
  EXPECT_EQ(apply(all.blocks[0].attn.proj, {1, 10}), (Row{121, 144}));
  EXPECT_EQ(apply(all.blocks[0].mlp.fc2, {1, 10}), (Row{121, 144}));
  EXPECT_EQ(apply(all.blocks[1].attn.proj, {1, 10}), (Row{3 * 121, 4 * 144}));
  EXPECT_EQ(apply(all.blocks[1].mlp.fc2, {1, 10}), (Row{5 * 121, 6 * 144}));
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
  (void)checker.layer_norm("norm", 4, 1e-6f);
  const ops::PackedLinear layer = checker.linear("fc", 5, {4});
  EXPECT_EQ(layer.out_features, 5) << "shapes are those asked for";
  EXPECT_EQ(checker.parameters(), 4 + 4 + 20 + 5);
  const auto problem = [&](const std::string& name) {
    const auto entry = std::ranges::find(checker.report(), name, &TensorReport::name);
    return entry == checker.report().end() ? "not asked for" : entry->problem;
  };
  EXPECT_EQ(checker.report().size(), 4u);
  EXPECT_EQ(problem("tower.norm.weight"), "");
  EXPECT_EQ(problem("tower.norm.bias"), "missing, expected [4]");
  EXPECT_EQ(problem("tower.fc.weight"), "has shape [3, 4] in model.safetensors, expected [5, 4]");
  EXPECT_EQ(problem("tower.fc.bias"), "missing, expected [5]");
}

TEST_F(WeightLoaderTest, ATensorThatIsAskedForTwiceIsReportedOnce) {
  const auto weights = checkpoint::WeightSource::dummy(3);
  WeightLoader checker(weights, "");
  (void)checker.f32("table", {2, 3});
  (void)checker.f32("table", {2, 3});
  EXPECT_EQ(checker.report().size(), 1u);
  EXPECT_EQ(checker.parameters(), 6);
}

TEST_F(WeightLoaderTest, CheckedWeightsHaveShapesAndTestAsPresent) {
  const auto weights = checkpoint::WeightSource::dummy(3);
  WeightLoader checker(weights, "");
  const LayerNorm norm = checker.layer_norm("norm", 4, 1e-5f);
  EXPECT_EQ(norm.weight.shape, Shape{4});
  EXPECT_TRUE(norm.bias.view());
  EXPECT_NE(norm.bias.view().data, Arena::measuring().tensor(DType::kF32, {4}).data)
      << "ops refuse operands that overlap";
  EXPECT_EQ(norm.epsilon, 1e-5f);
  EXPECT_EQ(checker.row("row", 4).shape, (Shape{1, 4}));
  const std::vector<float> values(6);
  EXPECT_EQ(checker.constant(values, {2, 3}).shape, (Shape{2, 3}));
  test::expect_error(ErrorCode::kInternal, "expected a constant of [2, 2], got 6 values", [&] {
    (void)checker.constant(values, {2, 2});
  });
  const Conv3x3 conv = checker.conv3x3("conv", 5, 2, 2, WeightLoader::Bias::kNo);
  EXPECT_EQ(conv.weight.in_features, 18);
  EXPECT_EQ(conv.weight.out_features, 5);
  EXPECT_EQ(conv.stride, 2);
  EXPECT_EQ(checker.report().back().shape, (std::vector<std::int64_t>{5, 2, 3, 3}));
  const ops::PackedLinear wide = checker.conv("wide", 5, 2, 4, WeightLoader::Bias::kYes);
  EXPECT_EQ(wide.in_features, 32);
  EXPECT_EQ(wide.out_features, 5);
  EXPECT_TRUE(wide.has_bias);
}

TEST_F(WeightLoaderTest, CheckedWeightsOverlapNothingThatAForwardWorksIn) {
  const auto weights = checkpoint::WeightSource::dummy(3);
  WeightLoader checker(weights, "");
  const Tensor row = checker.row("row", 4);
  Arena arena = Arena::measuring();
  const TensorView scratch = arena.tensor(DType::kF32, {1 << 20});
  EXPECT_GE(row.view().data, scratch.data + scratch.bytes());
}

TEST_F(WeightLoaderTest, TensorsAreTransformedOnTheirWayToTheDevice) {
  add("table", {2, 3}, 1);
  const checkpoint::WeightSource weights = source();
  WeightLoader loader(weights, "", *device_, *stream_);
  const Tensor turned = loader.f32_from("table", {2, 3}, {1, 2}, [](std::span<const float> values) {
    return std::vector<float>{values.back(), values.front()};
  });
  stream_->synchronize();
  EXPECT_EQ(turned.shape, (Shape{1, 2}));
  EXPECT_EQ(turned.view().as<float>()[0], 6);
  EXPECT_EQ(turned.view().as<float>()[1], 1);
}

TEST_F(WeightLoaderTest, AMatrixMayBeStoredTurned) {
  add("matrix", {2, 3}, 1);  // y_n = sum_k x_k W[k, n]
  const checkpoint::WeightSource weights = source();
  WeightLoader loader(weights, "", *device_, *stream_);
  const ops::PackedLinear layer = loader.transposed("matrix", 2, 3);
  EXPECT_FALSE(layer.has_bias);
  EXPECT_EQ(apply(layer, {1, 0}), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(apply(layer, {0, 1}), (std::vector<float>{4, 5, 6}));
  WeightLoader checker(weights, "");
  EXPECT_EQ(checker.transposed("matrix", 2, 3).out_features, 3);
  (void)checker.transposed("absent", 2, 3);
  EXPECT_EQ(checker.report()[0].problem, "");
  EXPECT_EQ(checker.report()[1].problem, "missing, expected [2, 3]");
}

TEST_F(WeightLoaderTest, ConvolutionsReadTheirChannelsTapByTap) {
  add("conv.weight", {1, 2, 3, 3}, 0);
  const checkpoint::WeightSource weights = source();
  WeightLoader loader(weights, "", *device_, *stream_);
  const Conv3x3 conv = loader.conv3x3("conv", 1, 2, 1, WeightLoader::Bias::kNo);
  for (std::size_t tap = 0; tap < 9; ++tap) {
    for (std::size_t channel = 0; channel < 2; ++channel) {
      std::vector<float> unit(18, 0.0f);
      unit[2 * tap + channel] = 1;
      EXPECT_EQ(apply(conv.weight, unit).front(), static_cast<float>(9 * channel + tap));
    }
  }
}

TEST_F(WeightLoaderTest, GatedLayersAreFilledUpWithZeros) {
  // 2 features, 3 wide: the gate is rows 0..2 of 8, what it gates rows 8..10.
  add("mlp.gate_proj.weight", {3, 2}, 1);
  add("mlp.gate_proj.bias", {3}, 100);
  add("mlp.up_proj.weight", {3, 2}, 11);
  add("mlp.up_proj.bias", {3}, 200);
  add("mlp.down_proj.weight", {2, 3}, 1);
  add("mlp.down_proj.bias", {2}, 300);
  const checkpoint::WeightSource weights = source();
  WeightLoader loader(weights, "", *device_, *stream_);
  const GatedMlp mlp = loader.gated("mlp", 2, 3, ops::Activation::kSilu, WeightLoader::Bias::kYes);
  EXPECT_EQ(apply(mlp.gate_up, {1, 10}), (std::vector<float>{121, 144, 167, 0, 0, 0, 0, 0,  //
                                                             331, 354, 377, 0, 0, 0, 0, 0}));
  EXPECT_EQ(mlp.down.in_features, 8);
  EXPECT_EQ(apply(mlp.down, {1, 10, 100, 7, 7, 7, 7, 7}), (std::vector<float>{621, 955}));
}

TEST_F(WeightLoaderTest, GatedLayersAreCheckedAsTheyAreStored) {
  const auto weights = checkpoint::WeightSource::dummy(3);
  WeightLoader checker(weights, "");
  const GatedMlp mlp = checker.gated("mlp", 2, 3, ops::Activation::kSilu, WeightLoader::Bias::kNo);
  EXPECT_EQ(mlp.gate_up.out_features, 16);
  EXPECT_EQ(mlp.down.in_features, 8);
  EXPECT_FALSE(mlp.down.has_bias);
  EXPECT_EQ(checker.parameters(), 3 * 2 * 3);
  EXPECT_EQ(checker.report().back().name, "mlp.down_proj.weight");
  EXPECT_EQ(checker.report().back().shape, (std::vector<std::int64_t>{2, 3}));
}

TEST_F(WeightLoaderTest, RmsNormsHaveAWeightAndNoBias) {
  const auto weights = checkpoint::WeightSource::dummy(3);
  WeightLoader checker(weights, "");
  const RmsNorm norm = checker.rms_norm("norm", 4, 1e-5f);
  EXPECT_EQ(norm.weight.shape, Shape{4});
  EXPECT_EQ(norm.epsilon, 1e-5f);
  ASSERT_EQ(checker.report().size(), 1u);
  EXPECT_EQ(checker.report().front().name, "norm.weight");
}

TEST_F(WeightLoaderTest, AProjectionWithoutBiasAsksForNone) {
  add("attn.qkv.weight", {6, 2}, 1);
  const checkpoint::WeightSource weights = source();
  WeightLoader checker(weights, "");
  EXPECT_FALSE(checker.qkv("attn", 2, WeightLoader::Bias::kNo).has_bias);
  EXPECT_EQ(checker.report().size(), 1u);
  WeightLoader loader(weights, "", *device_, *stream_);
  EXPECT_EQ(apply(loader.qkv("attn", 2, WeightLoader::Bias::kNo), {1, 1}).front(), 3.0f);
}

TEST_F(WeightLoaderTest, ConvolutionsOfAnySideMayHaveABias) {
  add("conv.weight", {2, 3, 2, 2}, 0);
  add("conv.bias", {2}, 100);
  const checkpoint::WeightSource weights = source();
  WeightLoader loader(weights, "", *device_, *stream_);
  const ops::PackedLinear conv = loader.conv("conv", 2, 3, 2, WeightLoader::Bias::kYes);
  for (std::size_t tap = 0; tap < 4; ++tap) {
    for (std::size_t channel = 0; channel < 3; ++channel) {
      std::vector<float> unit(12, 0.0f);
      unit[3 * tap + channel] = 1;
      const auto weight = static_cast<float>(4 * channel + tap);
      EXPECT_EQ(apply(conv, unit), (std::vector<float>{100 + weight, 101 + 12 + weight}));
    }
  }
  WeightLoader checker(weights, "");
  (void)checker.conv3x3("conv", 2, 3, 2, WeightLoader::Bias::kYes);
  EXPECT_EQ(checker.report().size(), 2u);
}

TEST_F(WeightLoaderTest, LayersOverUnfoldedPatchesReadTheirChannelsTapByTap) {
  add("merge.weight", {2, 3 * 4}, 0);
  const checkpoint::WeightSource weights = source();
  WeightLoader loader(weights, "", *device_, *stream_);
  const ops::PackedLinear layer = loader.unfolded("merge", 2, 3, 2, WeightLoader::Bias::kNo);
  for (std::size_t tap = 0; tap < 4; ++tap) {
    for (std::size_t channel = 0; channel < 3; ++channel) {
      std::vector<float> unit(12, 0.0f);
      unit[3 * tap + channel] = 1;
      const auto weight = static_cast<float>(4 * channel + tap);
      EXPECT_EQ(apply(layer, unit), (std::vector<float>{weight, 12 + weight}));
    }
  }
  WeightLoader checker(weights, "");
  EXPECT_EQ(checker.unfolded("merge", 2, 3, 2, WeightLoader::Bias::kNo).in_features, 12);
  EXPECT_EQ(checker.report().front().problem, "");
}

TEST_F(WeightLoaderTest, ABiasMayBeLeftToTheCheckpoint) {
  add("with.weight", {1, 2}, 1);
  add("with.bias", {1}, 10);
  add("without.weight", {1, 2}, 1);
  const checkpoint::WeightSource weights = source();
  WeightLoader loader(weights, "", *device_, *stream_);
  constexpr auto kIfStored = WeightLoader::Bias::kIfStored;
  EXPECT_EQ(apply(loader.linear("with", 1, {2}, kIfStored), {1, 0}), std::vector<float>{11});
  EXPECT_EQ(apply(loader.linear("without", 1, {2}, kIfStored), {1, 0}), std::vector<float>{1});
}

TEST_F(WeightLoaderTest, LayersAreChangedOnTheirWayToTheDevice) {
  add("fc.weight", {2, 1}, 1);
  add("fc.bias", {2}, 10);
  const checkpoint::WeightSource weights = source();
  const auto twice = [](std::vector<float>& weight, std::vector<float>& bias) {
    weight = {weight[0], weight[0], weight[1], weight[1]};
    bias[1] = 7;
  };
  WeightLoader checker(weights, "");
  EXPECT_EQ(checker.linear_from("fc", {2, 1}, 2, twice).in_features, 2);
  EXPECT_EQ(checker.report().size(), 2u);
  WeightLoader loader(weights, "", *device_, *stream_);
  EXPECT_EQ(apply(loader.linear_from("fc", {2, 1}, 2, twice), {1, 10}),
            (std::vector<float>{10 + 11, 7 + 22}));
  test::expect_error(ErrorCode::kInternal, "expected a layer of [2, 3], got 4 values", [&] {
    (void)loader.linear_from("fc", {2, 1}, 3, twice);
  });
}

TEST_F(WeightLoaderTest, DummyWeightsAlwaysFit) {
  const auto weights = checkpoint::WeightSource::dummy(3);
  WeightLoader checker(weights, "any.");
  (void)checker.layer_norm("norm", 4, 1e-6f);
  for (const TensorReport& tensor : checker.report()) EXPECT_EQ(tensor.problem, "");
  WeightLoader loader(weights, "any.", *device_, *stream_);
  EXPECT_EQ(apply(loader.linear("fc", 5, {4}), {1, 2, 3, 4}).size(), 5u);
}

TEST_F(WeightLoaderTest, APartWithoutABiasHasNone) {
  for (const char* part : {"q", "k", "v"}) add(std::string(part) + ".weight", {1, 2}, 0);
  add("q.bias", {1}, 10);
  add("v.bias", {1}, 30);
  const checkpoint::WeightSource weights = source();
  WeightLoader checker(weights, "");
  (void)checker.fused(
      {.parts = {"q", "k", "v"}, .part_rows = 1, .in_sizes = {2}, .biased = {true, false, true}},
      WeightLoader::Bias::kYes);
  EXPECT_EQ(checker.report().size(), 5U);
  WeightLoader loader(weights, "", *device_, *stream_);
  const ops::PackedLinear fused = loader.fused(
      {.parts = {"q", "k", "v"}, .part_rows = 1, .in_sizes = {2}, .biased = {true, false, true}},
      WeightLoader::Bias::kYes);
  EXPECT_EQ(apply(fused, {0, 1}), (std::vector<float>{11, 1, 31}));
}

TEST_F(WeightLoaderTest, TheQueryOfAProbeIsThatOfEveryRow) {
  add("probe", {1, 1, 2}, 1);   // 1 2
  add("in_weight", {6, 2}, 0);  // q: 0 1, 2 3; k: 4 5, 6 7; v: 8 9, 10 11
  add("in_bias", {6}, 100);
  const checkpoint::WeightSource weights = source();
  WeightLoader loader(weights, "", *device_, *stream_);
  const ops::PackedLinear qkv = loader.probed_qkv("in", "probe", 2);
  EXPECT_EQ(apply(qkv, {0, 0}), (std::vector<float>{102, 109, 102, 103, 104, 105}));
  EXPECT_EQ(apply(qkv, {1, 0}), (std::vector<float>{102, 109, 106, 109, 112, 115}));
}

}  // namespace
}  // namespace fovea::common
