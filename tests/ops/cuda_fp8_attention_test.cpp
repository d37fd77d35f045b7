// Attention behind a quantized projection on a GPU: E4M3 heads against double precision over the
// numbers that rounding leaves. That the GEMM brings heads where the kernel reads them is tested
// with its kernels (cuda_fp8_test.cpp). Skipped where there is no GPU that runs our kernels.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "fovea/tower/core/dtype.h"
#include "ops/cuda_gemm_cases.h"
#include "ops/projected_attention_steps.h"
#include "ops/quantized.h"
#include "support/naive_ops.h"
#include "support/temporary_directory.h"

namespace fovea::test {
namespace {

class CudaFp8AttentionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_gpu_with(CudaAttention::kHopper)) GTEST_SKIP() << "no GPU that runs our kernels";
  }
  [[nodiscard]] OpFixture fixture() const { return OpFixture(case_with_choices(folder_ / "made")); }

  struct Result {
    std::vector<float> got;
    std::vector<double> want;       ///< over the rounded heads
    std::vector<double> magnitude;  ///< the same with |v|: what a relative error of weights can do
  };

  /// @param spread what random queries are multiplied by: how far apart scores are.
  Result attend(Heads heads, const std::vector<std::int32_t>& lengths, float spread) {
    OpFixture f = fixture();
    const std::vector<std::int32_t> cu = offsets(lengths);
    const std::int64_t rows = cu.back();
    std::mt19937_64 generator(static_cast<std::uint64_t>(rows + heads.dim));
    const std::int64_t row = 3 * heads.width();
    std::vector<float> qkv = f.rounded(normal_values(generator, rows * row));
    std::vector<float> rounded;
    std::vector<float> magnitudes;
    for (std::size_t i = 0; i < qkv.size(); ++i) {
      const auto col = static_cast<std::int64_t>(i) % row;
      if (col < heads.width()) qkv[i] *= spread;
      rounded.push_back(e4m3_to_f32(f32_to_e4m3(qkv[i])));
      magnitudes.push_back(col < 2 * heads.width() ? rounded[i] : std::abs(rounded[i]));
    }
    const Tensor x = f.activations({rows, row}, qkv);
    const Tensor starts = f.ints({static_cast<std::int64_t>(cu.size())}, cu);
    const Tensor out = f.poisoned({rows, heads.width()});
    const auto naive = [&](const std::vector<float>& values) {
      return naive_attention(values, cu, heads.count, heads.dim, heads.scale());
    };
    return {f.run(out,
                  [&](ExecContext& ctx) {
                    ops::attention(ctx, args(heads, x, starts, heads.scale(), out.view()));
                  }),
            naive(rounded), naive(magnitudes)};
  }

  /// The same numbers of heads as rows of bf16 and as quantized ones.
  struct BothResults {
    std::vector<float> bf16;
    std::vector<float> values;  ///< of quantized rows, not yet multiplied by their scales
    std::vector<float> scale;
    std::vector<float> norm;
  };
  BothResults attend_to_both(Heads heads, const std::vector<std::int32_t>& lengths, float scale) {
    OpFixture f = fixture();
    const std::vector<std::int32_t> cu = offsets(lengths);
    const std::int64_t rows = cu.back();
    std::mt19937_64 generator(static_cast<std::uint64_t>(rows * heads.dim));
    const Tensor x = f.activations({rows, 3 * heads.width()},
                                   normal_values(generator, rows * 3 * heads.width()));
    const Tensor starts = f.ints({static_cast<std::int64_t>(cu.size())}, cu);
    const Tensor plain = f.poisoned({rows, heads.width()});
    const Shape shape{rows, heads.width()};
    const Tensor memory = f.bytes(std::vector<std::uint8_t>(ops::quantized_bytes(shape), 0x7f));
    const TensorView quantized{memory.view().data, DType::kF8E4M3, shape};
    ExecContext ctx = f.ctx();
    ops::attention(ctx, args(heads, x, starts, scale, plain.view()));
    ops::attention(ctx, args(heads, x, starts, scale, quantized));
    const auto read = [&](const void* from, auto& to) {
      f.stream().copy(reinterpret_cast<std::byte*>(to.data()), static_cast<const std::byte*>(from),
                      to.size() * sizeof(to[0]));
    };
    BothResults both{.bf16 = f.read(plain),
                     .scale = std::vector<float>(static_cast<std::size_t>(rows)),
                     .norm = std::vector<float>(static_cast<std::size_t>(rows))};
    std::vector<std::uint8_t> bits(both.bf16.size());
    const ops::QuantizedRows parts = ops::parts_of(quantized);
    read(parts.values, bits);
    read(parts.scale, both.scale);
    read(parts.norm, both.norm);
    f.stream().synchronize();
    for (const std::uint8_t value : bits) both.values.push_back(e4m3_to_f32(value));
    return both;
  }

  [[nodiscard]] static ops::AttentionArgs args(Heads heads, const Tensor& x, const Tensor& starts,
                                               float scale, const TensorView& out) {
    return {.qkv = x.view(),
            .sequences = {.cu_seqlens = starts.view(), .max_seqlen = x.shape[0]},
            .num_heads = heads.count,
            .head_dim = heads.dim,
            .scale = scale,
            .out = out,
            .projection_dtype = DType::kF8E4M3};
  }

  /// Quantized rows are those of f32 that were rounded to bf16 otherwise, so what rounding is given
  /// lies within half a step of bf16.
  static void expect_same_rows(const BothResults& both) {
    const std::size_t width = both.bf16.size() / both.scale.size();
    for (std::size_t row = 0; row < both.scale.size(); ++row) {
      double square = 0;
      for (std::size_t i = row * width; i < (row + 1) * width; ++i) {
        const float step = std::abs(both.bf16[i]) / 256;
        const auto rounded = [&](float value) {
          return e4m3_to_f32(f32_to_e4m3(value / both.scale[row]));
        };
        ASSERT_LE(rounded(both.bf16[i] - step), both.values[i]) << "row " << row;
        ASSERT_GE(rounded(both.bf16[i] + step), both.values[i]) << "row " << row;
        square += std::pow(double{both.values[i]} * both.scale[row], 2);
      }
      ASSERT_LE(std::sqrt(square), both.norm[row]);
    }
  }

  /// Weights are off by up to 2^-4 where they are rounded and by half of 6 % where 2^f is 1 + f; so
  /// is their sum. Those below 2^-6 of a largest one of 2^4 may be lost, of up to 2^9 keys 2^-2 of
  /// them. Sums keep 13 bits, results 8.
  static void expect_close(const Result& result) {
    ASSERT_EQ(result.got.size(), result.want.size());
    double error = 0;
    double square = 0;
    for (std::size_t i = 0; i < result.got.size(); ++i) {
      const double difference = std::abs(result.got[i] - result.want[i]);
      ASSERT_LE(difference, 0.2 * result.magnitude[i] + 1e-3) << "element " << i;
      error += difference * difference;
      square += result.want[i] * result.want[i];
    }
    EXPECT_LT(std::sqrt(error / square), 0.05);  // 2.6 % of rounding, 2 % of the ripple
  }

 private:
  TemporaryDirectory folder_;
};

TEST_F(CudaFp8AttentionTest, MatchesDoublePrecisionForEveryHeadDim) {
  for (const std::int64_t dim : {64, 72, 80, 88, 96, 112, 128}) {
    SCOPED_TRACE(dim);
    expect_close(attend({3, dim}, {13, 0, 331, 1, 200, 64}, 1.0f));
  }
}

TEST_F(CudaFp8AttentionTest, MatchesDoublePrecisionForEveryLength) {
  // Around slabs of 16 rows, tiles of 64 queries, steps of 128 keys.
  for (const std::int32_t length : {1, 2, 15, 16, 17, 63, 64, 65, 127, 128, 129, 143, 145, 385}) {
    SCOPED_TRACE(length);
    expect_close(attend({2, 72}, {length, 5, length}, 1.0f));
  }
}

TEST_F(CudaFp8AttentionTest, ThreeGroupsOfWarpsAndPeakedScores) {
  // So many tiles that a CTA has three groups; scores that lie far apart move the offsets.
  expect_close(attend({96, 72}, {200, 184}, 1.0f));
  expect_close(attend({96, 64}, {384}, 4.0f));
}

TEST_F(CudaFp8AttentionTest, LongSequencesLoseLittleInTheSums) {
  // Sums of tensor cores lose low bits with every instruction.
  expect_close(attend({1, 72}, {3000}, 1.0f));
}

TEST_F(CudaFp8AttentionTest, QuantizedRowsHaveOneScaleForAll) {
  for (const std::int64_t dim : {64, 72, 80, 88, 96, 112, 128}) {
    SCOPED_TRACE(dim);
    const Heads heads{3, dim};
    const BothResults both = attend_to_both(heads, {13, 0, 331, 1, 200, 64}, heads.scale());
    expect_same_rows(both);
    EXPECT_EQ(both.scale, std::vector<float>(both.scale.size(), 0.25f));
  }
}

TEST_F(CudaFp8AttentionTest, QuantizedRowsBehindAnotherKernelHaveScalesOfTheirOwn) {
  // A scale that is not positive is left to the kernel for bf16.
  const Heads heads{2, 80};
  const BothResults both = attend_to_both(heads, {100, 17}, -heads.scale());
  expect_same_rows(both);
  for (std::size_t row = 0; row < both.scale.size(); ++row) {
    float largest = 0;
    for (std::size_t i = row * 160; i < (row + 1) * 160; ++i)
      largest = std::max(largest, std::abs(both.bf16[i]));
    EXPECT_FLOAT_EQ(both.scale[row], largest / kMaxE4M3);
  }
}

TEST_F(CudaFp8AttentionTest, NanReachesOnlyItsSequence) {
  OpFixture f = fixture();
  const Heads heads{2, 72};
  const std::vector<std::int32_t> cu{0, 20, 50};
  const std::int64_t row = 3 * heads.width();
  std::vector<float> qkv(static_cast<std::size_t>(50 * row), 0.5f);
  qkv[static_cast<std::size_t>(10 * row + 2 * heads.width())] =
      std::numeric_limits<float>::quiet_NaN();  // a value of the first head
  const Tensor x = f.activations({50, row}, qkv);
  const Tensor starts = f.ints({3}, cu);
  const Tensor out = f.poisoned({50, heads.width()});
  ExecContext ctx = f.ctx();
  ops::attention(ctx, args(heads, x, starts, heads.scale(), out.view()));
  const std::vector<float> got = f.read(out);
  const auto width = static_cast<std::size_t>(heads.width());
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_EQ(std::isnan(got[i]), i / width < 20 && i % width == 0) << "element " << i;
}

}  // namespace
}  // namespace fovea::test
