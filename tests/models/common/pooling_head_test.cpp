// Attention of one query over the rows of every image.
#include "models/common/pooling_head.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

#include "checkpoint/safetensors.h"
#include "device/cpu/cpu_device.h"
#include "fovea/tower/device/arena.h"
#include "ops/cpu/cpu_kernels.h"
#include "support/temporary_directory.h"

namespace fovea::common {
namespace {

constexpr std::size_t kWidth = 16;
constexpr std::size_t kHeads = 2;
constexpr std::size_t kWide = 24;

using Matrix = std::vector<float>;

/// Random tensors of a head, by name.
class PoolingHeadTest : public ::testing::Test {
 protected:
  PoolingHeadTest() {
    const std::int64_t w = kWidth;
    const std::int64_t wide = kWide;
    add("probe", {1, 1, w});
    add("attention.in_proj_weight", {3 * w, w});
    add("attention.in_proj_bias", {3 * w});
    add("attention.out_proj.weight", {w, w});
    add("attention.out_proj.bias", {w});
    add("layernorm.weight", {w});
    add("layernorm.bias", {w});
    add("mlp.fc1.weight", {wide, w});
    add("mlp.fc1.bias", {wide});
    add("mlp.fc2.weight", {w, wide});
    add("mlp.fc2.bias", {w});
  }

  void add(const std::string& name, const Shape& shape) {
    tensors_[name] = random_values(static_cast<std::size_t>(shape.elements()));
    shapes_.emplace(name, shape);
  }
  Matrix random_values(std::size_t count) {
    std::normal_distribution<float> normal(0.0f, 0.5f);
    Matrix values(count);
    for (float& value : values) value = normal(random_);
    return values;
  }

  checkpoint::WeightSource source() {
    std::vector<checkpoint::OutputTensor> stored;
    for (const auto& [name, values] : tensors_) {
      stored.push_back(
          {"head." + name,
           {reinterpret_cast<const std::byte*>(values.data()), DType::kF32, shapes_.at(name)}});
    }
    checkpoint::write_safetensors(folder_ / "model.safetensors", stored, {});
    return checkpoint::WeightSource::open(folder_.path());
  }

  /// y = W x + b, rows `first` to `first + rows` of W.
  [[nodiscard]] std::vector<double> apply(const std::string& weight, const std::string& bias,
                                          const std::vector<double>& x, std::size_t first,
                                          std::size_t rows) const {
    std::vector<double> y;
    for (std::size_t r = first; r < first + rows; ++r) {
      double sum = tensors_.at(bias)[r];
      for (std::size_t c = 0; c < x.size(); ++c) {
        sum += double{tensors_.at(weight)[r * x.size() + c]} * x[c];
      }
      y.push_back(sum);
    }
    return y;
  }

  /// The formula of docs/reference/retrieval.md, "SigLIP", for the rows of one image.
  [[nodiscard]] std::vector<double> pooled(const std::vector<std::vector<double>>& rows) const {
    constexpr const char* kWeight = "attention.in_proj_weight";
    constexpr const char* kBias = "attention.in_proj_bias";
    constexpr std::size_t kHeadDim = kWidth / kHeads;
    const Matrix& probe = tensors_.at("probe");
    const std::vector<double> q = apply(kWeight, kBias, {probe.begin(), probe.end()}, 0, kWidth);
    std::vector<double> mixed(kWidth, 0.0);
    for (std::size_t head = 0; head < kHeads; ++head) {
      double total = 0;
      std::vector<double> sums(kHeadDim, 0.0);
      for (const std::vector<double>& row : rows) {
        const std::vector<double> k = apply(kWeight, kBias, row, kWidth, kWidth);
        const std::vector<double> v = apply(kWeight, kBias, row, 2 * kWidth, kWidth);
        double score = 0;
        for (std::size_t i = 0; i < kHeadDim; ++i) {
          score += q[head * kHeadDim + i] * k[head * kHeadDim + i];
        }
        const double part = std::exp(score / std::sqrt(double{kHeadDim}));
        total += part;
        for (std::size_t i = 0; i < kHeadDim; ++i) sums[i] += part * v[head * kHeadDim + i];
      }
      for (std::size_t i = 0; i < kHeadDim; ++i) mixed[head * kHeadDim + i] = sums[i] / total;
    }
    std::vector<double> h =
        apply("attention.out_proj.weight", "attention.out_proj.bias", mixed, 0, kWidth);
    double mean = 0;
    for (const double value : h) mean += value / double{kWidth};
    double variance = 0;
    for (const double value : h) variance += (value - mean) * (value - mean) / double{kWidth};
    std::vector<double> normed;
    for (std::size_t i = 0; i < kWidth; ++i) {
      normed.push_back((h[i] - mean) / std::sqrt(variance + 1e-6) *
                           tensors_.at("layernorm.weight")[i] +
                       tensors_.at("layernorm.bias")[i]);
    }
    std::vector<double> wide = apply("mlp.fc1.weight", "mlp.fc1.bias", normed, 0, kWide);
    for (double& value : wide) value *= 0.5 * (1 + std::erf(value / std::sqrt(2.0)));
    const std::vector<double> mlp = apply("mlp.fc2.weight", "mlp.fc2.bias", wide, 0, kWidth);
    for (std::size_t i = 0; i < kWidth; ++i) h[i] += mlp[i];
    return h;
  }

  test::TemporaryDirectory folder_;
  std::mt19937 random_{3};
  std::map<std::string, Matrix> tensors_;
  std::map<std::string, Shape> shapes_;
};

TEST_F(PoolingHeadTest, MakesAVectorOfTheRowsOfEachImage) {
  const auto weights = source();
  const auto kernels = make_cpu_kernels(detect_cpu_isa());
  const auto device = make_cpu_device(1, *kernels);
  const auto stream = device->create_stream();
  WeightLoader loader(weights, "", *device, *stream);
  const PoolingHead head = load_pooling_head(loader, "head.",
                                             {.hidden_size = kWidth,
                                              .num_attention_heads = kHeads,
                                              .intermediate_size = kWide,
                                              .hidden_act = ops::Activation::kGeluErf});
  const std::vector<std::int32_t> offsets{0, 1, 6, 9, 9};  // three images, and room for a fourth
  const std::int32_t images = 3;
  const std::int32_t live = 9;
  const Matrix x = random_values(static_cast<std::size_t>(live) * kWidth);
  Matrix vectors(4 * kWidth, -1.0f);

  const auto memory = device->allocate(1 << 20);
  Arena arena(memory.data(), memory.bytes());
  ExecContext ctx{*stream, *kernels, arena, *stream};
  const std::int64_t width = kWidth;
  pool(ctx, head,
       {.cu_seqlens = {reinterpret_cast<const std::byte*>(offsets.data()), DType::kI32, {5}},
        .seqs = {&images},
        .max_seqlen = 9,
        .rows = {&live}},
       {reinterpret_cast<const std::byte*>(x.data()), DType::kF32, {9, width}},
       {reinterpret_cast<std::byte*>(vectors.data()), DType::kF32, {4, width}});
  stream->synchronize();

  for (std::size_t image = 0; image < 3; ++image) {
    std::vector<std::vector<double>> rows;
    for (auto r = static_cast<std::size_t>(offsets[image]);
         r < static_cast<std::size_t>(offsets[image + 1]); ++r) {
      rows.emplace_back(x.begin() + static_cast<std::ptrdiff_t>(r * kWidth),
                        x.begin() + static_cast<std::ptrdiff_t>((r + 1) * kWidth));
    }
    const std::vector<double> expected = pooled(rows);
    for (std::size_t c = 0; c < kWidth; ++c) {
      EXPECT_NEAR(vectors[image * kWidth + c], expected[c], 1e-5) << image << " " << c;
    }
  }
}

}  // namespace
}  // namespace fovea::common
