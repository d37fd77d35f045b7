// Attention over a projection on every backend: it is what its steps are one after the other.
#include "fovea/tower/ops/projected_attention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "ops/projected_attention_steps.h"
#include "support/expect_error.h"
#include "support/op_fixture.h"

namespace fovea::test {
namespace {

class ProjectedAttentionTest : public ::testing::TestWithParam<OpCase> {
 protected:
  void expect_equal_to_steps(Heads heads, const std::vector<std::int32_t>& lengths, bool rotates,
                             float scale) {
    SCOPED_TRACE(::testing::Message() << heads.count << " heads of " << heads.dim << ", lengths "
                                      << ::testing::PrintToString(lengths) << ", scale " << scale);
    ProjectedAttention attention(f, heads, lengths, rotates);
    attention.set_scale(scale);
    const std::vector<float> got = attention.run();
    ASSERT_TRUE(std::ranges::all_of(got, [](float value) { return std::isfinite(value); }));
    const std::vector<float> steps = attention.run_step_by_step();
    if (f.exact_rows() && !rotates) return expect_same_bits(got, steps);
    // GEMM kernels that add in another order round some of q, k and v the other way; so does a
    // rotation with another number of roundings.
    f.expect_close(got, {steps.begin(), steps.end()}, OpClass::kAttention);
  }

  OpFixture f{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Devices, ProjectedAttentionTest, ::testing::ValuesIn(op_cases()),
                         op_case_name);

TEST_P(ProjectedAttentionTest, WithoutAnglesEqualsLinearThenAttention) {
  for (const std::int64_t dim : {8, 64, 72, 80, 128})
    expect_equal_to_steps({2, dim}, {8, 16, 590, 7}, false, Heads{2, dim}.scale());
}

TEST_P(ProjectedAttentionTest, WithAnglesEqualsLinearThenRotationThenAttention) {
  // Short and long sequences, of whole slabs of eight rows and not.
  for (const std::int64_t dim : {8, 64, 72, 80, 88, 96, 112, 128})
    expect_equal_to_steps({3, dim}, {13, 0, 331, 1, 200}, true, Heads{3, dim}.scale());
  expect_equal_to_steps({5, 72}, {400, 264, 9, 0, 0, 641}, true, Heads{5, 72}.scale());
  expect_equal_to_steps({4, 72}, {700}, true, Heads{4, 72}.scale());
}

TEST_P(ProjectedAttentionTest, WithNormsHeadsOfQAndKAreNormalisedBeforeTheyAreRotated) {
  for (const std::int64_t dim : {8, 64, 72, 128}) {
    for (const bool rotates : {false, true}) {
      SCOPED_TRACE(::testing::Message() << dim << (rotates ? ", rotated" : ""));
      ProjectedAttention attention(f, {3, dim}, {13, 0, 331, 1, 300}, rotates);
      attention.set_norms();
      const std::vector<float> got = attention.run();
      const std::vector<float> steps = attention.run_step_by_step();
      f.expect_close(got, {steps.begin(), steps.end()}, OpClass::kAttention);
    }
  }
}

TEST_P(ProjectedAttentionTest, HeadsOfVAreNormalisedToo) {
  for (const std::int64_t dim : {8, 72, 128}) {
    ProjectedAttention attention(f, {3, dim}, {13, 0, 331, 1, 300}, true);
    attention.set_norms(true);
    const std::vector<float> steps = attention.run_step_by_step();
    f.expect_close(attention.run(), {steps.begin(), steps.end()}, OpClass::kAttention);
  }
}

TEST_P(ProjectedAttentionTest, EqualsHeadAttentionOverItsProjection) {
  for (const bool rotates : {false, true}) {
    ProjectedAttention attention(f, {3, 72}, {13, 0, 331, 1, 300}, rotates);
    attention.set_norms(true);
    expect_same_bits(attention.run_in_two_steps(), attention.run());
  }
}

TEST_P(ProjectedAttentionTest, TakesAnyScale) {
  for (const float scale : {0.1f, -0.1f, 0.0f}) {
    expect_equal_to_steps({2, 72}, {520, 9}, true, scale);
    expect_equal_to_steps({2, 64}, {610}, false, scale);
  }
}

TEST_P(ProjectedAttentionTest, NoRowsIsLegal) {
  const Tensor x = make_tensor(f.device(), f.dtype(), {0, 8});
  const Tensor qkv = make_tensor(f.device(), f.dtype(), {0, 24});
  const Tensor out = make_tensor(f.device(), f.dtype(), {0, 8});
  const Tensor angles = make_tensor(f.device(), DType::kF32, {0, 4});
  const Tensor cu = f.ints({1}, {0});
  const std::vector<float> weight(24 * 8, 0.0f);
  const ops::PackedLinear projection = ops::pack_linear(f.device(), view_of(weight, {24, 8}), {});
  ExecContext ctx = f.ctx();
  EXPECT_NO_THROW(
      ops::projected_attention(ctx, {.x = x.view(),
                                     .projection = projection,
                                     .qkv = qkv.view(),
                                     .cos = angles.view(),
                                     .sin = angles.view(),
                                     .sequences = {.cu_seqlens = cu.view(), .max_seqlen = 0},
                                     .num_heads = 1,
                                     .head_dim = 8,
                                     .scale = 1,
                                     .out = out.view()}));
}

TEST_P(ProjectedAttentionTest, NamesWhatIsWrongWithItsArguments) {
  ProjectedAttention attention(f, {2, 8}, {2, 3}, true);
  attention.set_norms();
  const std::int64_t rows = 5 + ProjectedAttention::kIdleRows;
  const ops::ProjectedAttentionArgs good = attention.args();
  const auto expect_of = [&](const ops::ProjectedAttentionArgs& args, const std::string& message) {
    ExecContext ctx = f.ctx();
    expect_error(ErrorCode::kInvalidArgument, message,
                 [&] { ops::projected_attention(ctx, args); });
  };
  const auto expect = [&](const std::string& message, const auto& change) {
    ops::ProjectedAttentionArgs args = good;
    change(args);
    expect_of(args, message);
  };
  expect("projected_attention: num_heads must be > 0, got 0", [](auto& a) { a.num_heads = 0; });
  expect(cat("max_seqlen must be in [0, ", rows, "], got -1"),
         [](auto& a) { a.sequences.max_seqlen = -1; });
  expect("projected_attention: x must be", [](auto& a) { a.x.shape = {6, 8}; });
  expect("projected_attention: qkv and x must not overlap", [](auto& a) { a.x.data = a.qkv.data; });
  expect(cat("cos must be float32 [", rows, ", 4], got float32 [", rows, ", 8]"), [&](auto& a) {
    a.cos.shape = {rows, 8};
  });
  expect("norms.k must be float32 [8], got", [](auto& a) { a.norms.k = {}; });
  expect("norms.q must be float32 [8], got float32 [4]", [](auto& a) { a.norms.q.shape = {4}; });
  expect("norms.v must be float32 [8], got float32 [4]", [&](auto& a) {
    a.norms.v = a.norms.k;
    a.norms.v.shape = {4};
  });
  expect("epsilon must be > 0, got 0", [](auto& a) { a.norms.epsilon = 0; });
  expect("cos must be float32", [](auto& a) { a.cos = {}; });
  expect("sin must be float32", [](auto& a) { a.sin = {}; });
  const std::vector<float> weight(40 * 136, 0.0f);
  const ops::PackedLinear narrow = ops::pack_linear(f.device(), view_of(weight, {40, 136}), {});
  expect_of({.x = good.x,
             .projection = narrow,
             .qkv = good.qkv,
             .sequences = good.sequences,
             .num_heads = good.num_heads,
             .head_dim = good.head_dim,
             .scale = good.scale,
             .out = good.out},
            "projected_attention: projection must be to 48 features, got 40");
}

TEST_P(ProjectedAttentionTest, AnglesBeginAtMultiplesOf16BytesOnAGpu) {
  if (f.exact_rows()) GTEST_SKIP() << "the CPU reads from any address";
  const ProjectedAttention attention(f, {1, 8}, {4}, true);
  for (ConstTensorView ops::ProjectedAttentionArgs::*const angles :
       {&ops::ProjectedAttentionArgs::cos, &ops::ProjectedAttentionArgs::sin}) {
    ops::ProjectedAttentionArgs args = attention.args();
    (args.*angles).data += sizeof(float);
    ExecContext ctx = f.ctx();
    expect_error(ErrorCode::kInvalidArgument, "must begin at a multiple of 16 bytes on a GPU",
                 [&] { ops::projected_attention(ctx, args); });
  }
}

}  // namespace
}  // namespace fovea::test
