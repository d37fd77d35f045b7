// Counting of work: operations, flops and weight bytes, workspaces asked of the real backend.
#include "ops/cost_kernels.h"

#include <gtest/gtest.h>

#include <vector>

#include "device/cpu/cpu_device.h"
#include "fovea/tower/ops/context.h"
#include "ops/cpu/cpu_kernels.h"
#include "support/expect_error.h"

namespace fovea::test {
namespace {

class CostKernelsTest : public ::testing::Test {
 protected:
  std::unique_ptr<Kernels> backend_ = make_cpu_kernels(CpuIsa::kPortable, 2);
  std::unique_ptr<Device> device_ = make_cpu_device(2, *backend_);
  std::unique_ptr<Stream> stream_ = device_->create_stream();
  CostKernels cost_{*backend_};
  Arena arena_ = Arena::measuring();
  ExecContext ctx_{*stream_, cost_, arena_, *stream_};
};

TEST_F(CostKernelsTest, CountsTwoFlopsPerMultiplyAddOfALinearLayer) {
  const std::vector<float> values(5 * 7, 1.0f);
  const ops::PackedLinear packed = ops::pack_linear(
      *device_, {reinterpret_cast<const std::byte*>(values.data()), DType::kF32, {5, 7}}, {});
  const TensorView x = arena_.tensor(DType::kF32, {11, 7});
  const TensorView out = arena_.tensor(DType::kF32, {11, 5});
  ops::linear(ctx_, {.x = x, .weight = packed, .out = out});
  ops::linear(ctx_, {.x = x, .weight = packed, .out = out});
  EXPECT_EQ(cost_.flops(), 2 * 2.0 * 11 * 7 * 5);
}

TEST_F(CostKernelsTest, CountsAttentionAsIfEverySequenceWereTheLongest) {
  const ops::AttentionArgs args{
      .qkv = arena_.tensor(DType::kF32, {100, 3 * 2 * 16}),
      .sequences = {.cu_seqlens = arena_.tensor(DType::kI32, {5}), .max_seqlen = 40},
      .num_heads = 2,
      .head_dim = 16,
      .scale = 0.25f,
      .out = arena_.tensor(DType::kF32, {100, 2 * 16})};
  ops::attention(ctx_, args);
  EXPECT_EQ(cost_.flops(), 4.0 * 100 * 40 * 2 * 16);
}

TEST_F(CostKernelsTest, TakeFromTheArenaWhatTheBackendWouldTake) {
  const ops::AttentionArgs args{
      .qkv = arena_.tensor(DType::kF32, {100, 3 * 2 * 16}),
      .sequences = {.cu_seqlens = arena_.tensor(DType::kI32, {5}), .max_seqlen = 40},
      .num_heads = 2,
      .head_dim = 16,
      .scale = 0.25f,
      .out = arena_.tensor(DType::kF32, {100, 2 * 16})};
  const std::size_t before = arena_.high_water();
  ops::attention(ctx_, args);
  EXPECT_GE(arena_.high_water(), before + backend_->attention_workspace(args));
}

TEST_F(CostKernelsTest, CountsTheProjectionBeforeAttention) {
  const std::vector<float> weight(3 * 16 * 7, 0.0f);
  const ops::PackedLinear packed = ops::pack_linear(
      *device_, {reinterpret_cast<const std::byte*>(weight.data()), DType::kF32, {3 * 16, 7}}, {});
  ops::projected_attention(
      ctx_, {.x = arena_.tensor(DType::kF32, {11, 7}),
             .projection = packed,
             .qkv = arena_.tensor(DType::kF32, {11, 3 * 16}),
             .sequences = {.cu_seqlens = arena_.tensor(DType::kI32, {2}), .max_seqlen = 11},
             .num_heads = 1,
             .head_dim = 16,
             .scale = 0.25f,
             .out = arena_.tensor(DType::kF32, {11, 16})});
  EXPECT_EQ(cost_.flops(), 2.0 * 11 * 7 * 48 + 4.0 * 11 * 11 * 16);
}

TEST_F(CostKernelsTest, CountsPointwiseOpsWithoutFlops) {
  const TensorView x = arena_.tensor(DType::kF32, {8, 64});
  const TensorView out = arena_.tensor(DType::kF32, {8, 64});
  const TensorView vector = arena_.tensor(DType::kF32, {64});
  const TensorView positions = arena_.tensor(DType::kI32, {8, 4});
  const TensorView angles = arena_.tensor(DType::kF32, {8, 8});
  const TensorView index = arena_.tensor(DType::kI32, {8});
  ops::layer_norm(ctx_, {.x = x, .weight = vector, .bias = vector, .epsilon = 1e-6f, .out = out});
  ops::rms_norm(ctx_, {.x = x, .weight = vector, .epsilon = 1e-6f, .out = out});
  ops::activate(ctx_, {.activation = ops::Activation::kSilu, .x = out});
  ops::gated(ctx_, {.x = arena_.tensor(DType::kF32, {8, 128}), .out = out});
  ops::clamp(ctx_, {.x = x, .least = vector, .most = vector, .out = out});
  ops::rope_angles(ctx_, {.positions = positions,
                          .inv_freq = arena_.tensor(DType::kF32, {8}),
                          .cos = angles,
                          .sin = angles});
  ops::gather_rows(ctx_, {.x = x, .index = index, .out = out});
  ops::add_positions_bilinear(ctx_, {.table = arena_.tensor(DType::kF32, {12, 64}),
                                     .positions = positions,
                                     .table_height = 3,
                                     .table_width = 4,
                                     .x = out});
  ops::add_positions_half_pixel(ctx_, {.table = arena_.tensor(DType::kF32, {12, 64}),
                                       .positions = positions,
                                       .table_height = 3,
                                       .table_width = 4,
                                       .x = out});
  ops::add_positions_bicubic(ctx_, {.table = arena_.tensor(DType::kF32, {12, 64}),
                                    .positions = positions,
                                    .table_height = 3,
                                    .table_width = 4,
                                    .x = out});
  ops::interpolate_grids(ctx_, {.x = arena_.tensor(DType::kF32, {12, 64}),
                                .height = 3,
                                .width = 4,
                                .out_height = 2,
                                .out_width = 2,
                                .out_line_rows = 2,
                                .out = arena_.tensor(DType::kF32, {4, 64})});
  ops::patchify(ctx_, {.pixels = arena_.tensor(DType::kU8, {1000}),
                       .sources = positions,
                       .table = arena_.tensor(DType::kF32, {3, 256}),
                       .patch_size = 2,
                       .temporal_patch_size = 1,
                       .out = arena_.tensor(DType::kF32, {8, 12})});
  EXPECT_EQ(cost_.flops(), 0.0);
}

TEST_F(CostKernelsTest, PacksNoWeights) {
  expect_error(ErrorCode::kInternal, "pack no weights",
               [&] { (void)cost_.pack_linear(*device_, {}, {}, {}); });
}

}  // namespace
}  // namespace fovea::test
