// What ops on a GPU refuse that the CPU takes. Skipped where there is no GPU.
#include <gtest/gtest.h>

#include <functional>
#include <optional>

#include "ops/kernels.h"
#include "support/expect_error.h"
#include "support/op_fixture.h"

namespace fovea::test {
namespace {

class CudaOperandsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const OpCase& op_case : op_cases())
      if (op_case.device.name == "cuda") f.emplace(op_case);
    if (!f) GTEST_SKIP() << "no GPU";
  }
  void expect(ErrorCode code, const std::string& message,
              const std::function<void(ExecContext&)>& op) {
    SCOPED_TRACE(message);
    ExecContext ctx = f->ctx();
    expect_error(code, message, [&] { op(ctx); });
  }
  [[nodiscard]] Tensor zeros(const Shape& shape) {
    return f->floats(shape, std::vector<float>(static_cast<std::size_t>(shape.elements()), 0.0f));
  }

  std::optional<OpFixture> f;
};

TEST_F(CudaOperandsTest, ComputeInBf16Alone) {
  const Tensor x = zeros({4, 24});
  const Tensor y = zeros({4, 24});
  const Tensor heads = zeros({4, 8});
  const Tensor columns = zeros({24});
  const Tensor angles = zeros({4, 4});
  const Tensor table = zeros({4, 24});
  const Tensor indices = f->ints({4}, {0, 1, 2, 3});
  const Tensor sources = f->ints({4, 4}, std::vector<std::int32_t>(16, 0));
  const Tensor pixels = f->bytes(std::vector<std::uint8_t>(24, 0));
  const Tensor values = zeros({3, 256});
  const ops::PackedLinear weight =
      ops::pack_linear(f->device(), view_of(std::vector<float>(24 * 24, 0.0f), {24, 24}), {});
  const auto refuse = [&](const std::string& what, const std::function<void(ExecContext&)>& op) {
    expect(ErrorCode::kUnsupported, what + " must be bfloat16 on a GPU, got float32", op);
  };
  refuse("linear: x", [&](ExecContext& ctx) {
    ops::linear(ctx, {.x = x.view(), .weight = weight, .out = y.view()});
  });
  refuse("layer_norm: x", [&](ExecContext& ctx) {
    ops::layer_norm(ctx, {x.view(), columns.view(), columns.view(), 1, {}, y.view()});
  });
  refuse("rms_norm: x", [&](ExecContext& ctx) {
    ops::rms_norm(ctx, {x.view(), columns.view(), 1, {}, y.view()});
  });
  refuse("rope: qkv", [&](ExecContext& ctx) {
    ops::rope(ctx, {x.view(), angles.view(), angles.view(), 1, 8, {}});
  });
  refuse("attention: qkv", [&](ExecContext& ctx) {
    ops::attention(ctx, {.qkv = x.view(),
                         .cu_seqlens = indices.view(),
                         .num_heads = 1,
                         .head_dim = 8,
                         .scale = 1,
                         .max_seqlen = 4,
                         .out = heads.view()});
  });
  refuse("patchify: out", [&](ExecContext& ctx) {
    ops::patchify(ctx, {pixels.view(), sources.view(), values.view(), 2, 2, {}, y.view()});
  });
  refuse("add_positions_bilinear: x", [&](ExecContext& ctx) {
    ops::add_positions_bilinear(ctx, {table.view(), sources.view(), 2, {}, y.view()});
  });
  refuse("gather_rows: x", [&](ExecContext& ctx) {
    ops::gather_rows(ctx, {x.view(), indices.view(), {}, y.view()});
  });
  refuse("copy_row_blocks: out", [&](ExecContext& ctx) {
    ops::copy_row_blocks(
        ctx, {.x = x.view(), .x_block_rows = 2, .count = 2, .out = y.view(), .out_block_rows = 2});
  });
  refuse("add_table: x", [&](ExecContext& ctx) {
    ops::add_table(ctx, {table.view(), {}, y.view()});
  });
  refuse("im2col_3x3: x", [&](ExecContext& ctx) {
    const Tensor rows = zeros({4, 9 * 24});
    ops::im2col_3x3(ctx, {x.view(), 2, 2, 1, {}, rows.view()});
  });
}

TEST_F(CudaOperandsTest, AttentionBeginsAtMultiplesOf16Bytes) {
  const Tensor memory = f->poisoned({64, 24});
  const Tensor out = f->poisoned({4, 8});
  const Tensor offsets = f->ints({2}, {0, 4});
  TensorView qkv = memory.view();
  qkv.shape = {4, 24};
  qkv.data += 2;
  expect(ErrorCode::kInvalidArgument, "attention: qkv must begin at a multiple of 16 bytes",
         [&](ExecContext& ctx) {
           ops::attention(ctx, {.qkv = qkv,
                                .cu_seqlens = offsets.view(),
                                .num_heads = 1,
                                .head_dim = 8,
                                .scale = 1,
                                .max_seqlen = 4,
                                .out = out.view()});
         });
}

}  // namespace
}  // namespace fovea::test
