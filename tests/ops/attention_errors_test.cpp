// What attention refuses, on every backend.
#include "fovea/tower/ops/attention.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "support/op_fixture.h"

namespace fovea::test {
namespace {

class AttentionErrorsTest : public ::testing::TestWithParam<OpCase> {
 protected:
  OpFixture f{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Devices, AttentionErrorsTest, ::testing::ValuesIn(op_cases()),
                         op_case_name);

TEST_P(AttentionErrorsTest, NamesWhatIsWrongWithItsArguments) {
  const Tensor qkv = f.poisoned({6, 48});
  const Tensor out = f.poisoned({6, 16});
  const Tensor cu = f.ints({3}, {0, 2, 6});
  const ops::AttentionArgs good{.qkv = qkv.view(),
                                .sequences = {.cu_seqlens = cu.view(), .max_seqlen = 6},
                                .num_heads = 2,
                                .head_dim = 8,
                                .scale = 1,
                                .out = out.view()};
  const auto expect = [&](const std::string& message, const auto& change) {
    ops::AttentionArgs args = good;
    change(args);
    ExecContext ctx = f.ctx();
    expect_error(ErrorCode::kInvalidArgument, message, [&] { ops::attention(ctx, args); });
  };
  expect("attention: num_heads must be > 0, got 0", [](auto& a) { a.num_heads = 0; });
  expect("head_dim must be a positive multiple of 8, got 12", [](auto& a) { a.head_dim = 12; });
  expect("head_dim must be a positive multiple of 8, got 0", [](auto& a) { a.head_dim = 0; });
  expect("scale must be finite, got nan", [](auto& a) { a.scale = kNan; });
  expect("qkv must be float32, float16 or bfloat16, got int32",
         [](auto& a) { a.qkv.dtype = DType::kI32; });
  expect("qkv must have rank 2, got shape [6]", [](auto& a) { a.qkv.shape = {6}; });
  expect("[6, 48], got", [](auto& a) { a.qkv.shape = {6, 40}; });
  expect("out must be", [](auto& a) { a.out.shape = {5, 16}; });
  expect("out of shape [6, 16] has no memory", [](auto& a) { a.out.data = nullptr; });
  expect("out and qkv must not overlap",
         [](auto& a) { a.out.data = const_cast<std::byte*>(a.qkv.data) + 16; });
  expect("cu_seqlens must be int32 [sequences + 1], got shape []",
         [](auto& a) { a.sequences.cu_seqlens.shape = Shape{}; });
  expect("cu_seqlens must be int32 [sequences + 1], got shape [0]",
         [](auto& a) { a.sequences.cu_seqlens.shape = {0}; });
  expect("cu_seqlens must be int32 [3], got float32",
         [](auto& a) { a.sequences.cu_seqlens.dtype = DType::kF32; });
  expect("max_seqlen must be in [0, 6], got 7", [](auto& a) { a.sequences.max_seqlen = 7; });
  expect("max_seqlen must be in [0, 6], got -1", [](auto& a) { a.sequences.max_seqlen = -1; });
  expect("prefix_rows must not be negative, got -1", [](auto& a) { a.sequences.prefix_rows = -1; });
}

TEST_P(AttentionErrorsTest, BeginsAtMultiplesOf16BytesOnAGpu) {
  if (f.exact_rows()) GTEST_SKIP() << "the CPU reads from any address";
  const Tensor memory = f.poisoned({5, 24});
  const Tensor out = f.poisoned({4, 8});
  const Tensor cu = f.ints({2}, {0, 4});
  TensorView qkv = memory.view();
  qkv.shape = {4, 24};
  qkv.data += size_of(f.dtype());
  ExecContext ctx = f.ctx();
  expect_error(ErrorCode::kInvalidArgument,
               "attention: qkv must begin at a multiple of 16 bytes on a GPU", [&] {
                 ops::attention(ctx, {.qkv = qkv,
                                      .sequences = {.cu_seqlens = cu.view(), .max_seqlen = 4},
                                      .num_heads = 1,
                                      .head_dim = 8,
                                      .scale = 1,
                                      .out = out.view()});
               });
}

TEST_P(AttentionErrorsTest, RefusesOffsetsThatWouldReadOtherMemory) {
  if (!f.exact_rows()) GTEST_SKIP() << "offsets in device memory are not checked";
  const Tensor qkv = f.poisoned({6, 24});
  const Tensor out = f.poisoned({6, 8});
  const auto expect = [&](const std::string& message, const std::vector<std::int32_t>& offsets,
                          std::int64_t max_seqlen) {
    const Tensor cu = f.ints({static_cast<std::int64_t>(offsets.size())}, offsets);
    ExecContext ctx = f.ctx();
    expect_error(ErrorCode::kInternal, message, [&] {
      ops::attention(ctx, {.qkv = qkv.view(),
                           .sequences = {.cu_seqlens = cu.view(), .max_seqlen = max_seqlen},
                           .num_heads = 1,
                           .head_dim = 8,
                           .scale = 1,
                           .out = out.view()});
    });
  };
  expect("cu_seqlens spans 0..7 of 6 live rows", {0, 2, 7}, 6);
  expect("cu_seqlens spans -1..6 of 6 live rows", {-1, 6}, 6);
  expect("sequence 1 has -2 rows, expected 0 to 6", {0, 4, 2, 6}, 6);
  expect("sequence 0 has 4 rows, expected 0 to 3", {0, 4, 6}, 3);
}

}  // namespace
}  // namespace fovea::test
