// Backends compute in one dtype; activations of another are refused by every op, not misread.
#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "core/check.h"
#include "ops/kernels.h"
#include "support/expect_error.h"
#include "support/op_fixture.h"

namespace fovea::test {
namespace {

class ActivationDtypeTest : public ::testing::TestWithParam<OpCase> {
 protected:
  OpFixture f{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Devices, ActivationDtypeTest, ::testing::ValuesIn(op_cases()),
                         op_case_name);

TEST_P(ActivationDtypeTest, OthersAreRefused) {
  const DType other = f.dtype() == DType::kF32 ? DType::kBF16 : DType::kF32;
  const auto wrong = [&](const Shape& shape) { return make_tensor(f.device(), other, shape); };
  const auto zeros = [&](const Shape& shape) {
    return make_tensor(f.device(), DType::kF32, shape);
  };
  const Tensor x = wrong({4, 24});
  const Tensor y = wrong({4, 24});
  const Tensor doubled = wrong({4, 48});
  const Tensor heads = wrong({4, 8});
  const Tensor queries = wrong({4, 8});
  const Tensor pairs = wrong({4, 16});
  const Tensor taps = wrong({4, 9 * 24});
  const Tensor columns = zeros({24});
  const Tensor table = zeros({4, 24});
  const Tensor byte_values = zeros({3, 256});
  const Tensor distances = zeros({3, 8});
  const Tensor indices = f.ints({4}, {0, 1, 2, 3});
  const Tensor offsets = f.ints({5}, {0, 1, 2, 3, 4});
  const Tensor places = f.ints({4, 4}, std::vector<std::int32_t>(16, 0));
  const Tensor pixels = f.bytes(std::vector<std::uint8_t>(24, 0));
  const std::vector<float> weight(24 * 24, 0.0f);
  const ops::PackedLinear packed = ops::pack_linear(f.device(), view_of(weight, {24, 24}), {});

  const std::vector<std::pair<std::string, std::function<void(ExecContext&)>>> all{
      {"linear",
       [&](ExecContext& ctx) {
         ops::linear(ctx, {.x = x.view(), .weight = packed, .out = y.view()});
       }},
      {"layer_norm",
       [&](ExecContext& ctx) {
         ops::layer_norm(ctx, {x.view(), columns.view(), columns.view(), 1, {}, y.view()});
       }},
      {"rms_norm",
       [&](ExecContext& ctx) {
         ops::rms_norm(ctx, {x.view(), columns.view(), 1, {}, y.view()});
       }},
      {"activate",
       [&](ExecContext& ctx) {
         ops::activate(ctx, {.activation = ops::Activation::kSilu, .x = y.view()});
       }},
      {"gated", [&](ExecContext& ctx) { ops::gated(ctx, {.x = doubled.view(), .out = y.view()}); }},
      {"clamp",
       [&](ExecContext& ctx) {
         ops::clamp(ctx, {x.view(), columns.view(), columns.view(), {}, y.view()});
       }},
      {"head_attention",
       [&](ExecContext& ctx) {
         ops::head_attention(ctx, {.qkv = x.view(),
                                   .sequences = {.cu_seqlens = indices.view(), .max_seqlen = 4},
                                   .num_heads = 1,
                                   .head_dim = 8,
                                   .scale = 1,
                                   .out = heads.view()});
       }},
      {"attention",
       [&](ExecContext& ctx) {
         ops::attention(ctx, {.qkv = x.view(),
                              .sequences = {.cu_seqlens = indices.view(), .max_seqlen = 4},
                              .num_heads = 1,
                              .head_dim = 8,
                              .scale = 1,
                              .out = heads.view()});
       }},
      {"projected_attention",
       [&](ExecContext& ctx) {
         ops::projected_attention(ctx,
                                  {.x = y.view(),
                                   .projection = packed,
                                   .qkv = x.view(),
                                   .sequences = {.cu_seqlens = indices.view(), .max_seqlen = 4},
                                   .num_heads = 1,
                                   .head_dim = 8,
                                   .scale = 1,
                                   .out = heads.view()});
       }},
      {"grid_attention",
       [&](ExecContext& ctx) {
         ops::grid_attention(ctx, {.qkv = x.view(),
                                   .pad_qkv = columns.view(),
                                   .rel_pos_h = distances.view(),
                                   .rel_pos_w = distances.view(),
                                   .height = 2,
                                   .width = 2,
                                   .window = 0,
                                   .num_heads = 1,
                                   .head_dim = 8,
                                   .scale = 1,
                                   .out = heads.view()});
       }},
      {"patchify",
       [&](ExecContext& ctx) {
         ops::patchify(ctx, {pixels.view(), places.view(), byte_values.view(), 2, 2, {}, y.view()});
       }},
      {"add_positions_bilinear",
       [&](ExecContext& ctx) {
         ops::add_positions_bilinear(ctx, {table.view(), places.view(), 2, 2, {}, y.view()});
       }},
      {"add_positions_half_pixel",
       [&](ExecContext& ctx) {
         ops::add_positions_half_pixel(ctx, {table.view(), places.view(), 2, 2, {}, y.view()});
       }},
      {"add_positions_bicubic",
       [&](ExecContext& ctx) {
         ops::add_positions_bicubic(ctx, {table.view(), places.view(), 2, 2, {}, y.view()});
       }},
      {"add_positions_antialiased",
       [&](ExecContext& ctx) {
         ops::add_positions_antialiased(ctx, {table.view(), places.view(), 2, 2, {}, y.view()});
       }},
      {"interpolate_grids",
       [&](ExecContext& ctx) {
         ops::interpolate_grids(ctx, {.x = x.view(),
                                      .height = 1,
                                      .width = 1,
                                      .out_height = 1,
                                      .out_width = 1,
                                      .out_line_rows = 1,
                                      .out = y.view()});
       }},
      {"gather_rows",
       [&](ExecContext& ctx) {
         ops::gather_rows(ctx, {x.view(), indices.view(), {}, y.view()});
       }},
      {"copy_row_blocks",
       [&](ExecContext& ctx) {
         ops::copy_row_blocks(
             ctx,
             {.x = x.view(), .x_block_rows = 2, .count = 2, .out = y.view(), .out_block_rows = 2});
       }},
      {"add_table",
       [&](ExecContext& ctx) {
         ops::add_table(ctx, {table.view(), {}, y.view()});
       }},
      {"mean_row_blocks",
       [&](ExecContext& ctx) {
         ops::mean_row_blocks(ctx, {.x = x.view(), .block_rows = 1, .out = y.view()});
       }},
      {"cross_attention",
       [&](ExecContext& ctx) {
         ops::cross_attention(ctx, {.q = queries.view(),
                                    .kv = pairs.view(),
                                    .cu_queries = offsets.view(),
                                    .cu_keys = offsets.view(),
                                    .num_heads = 1,
                                    .head_dim = 8,
                                    .scale = 1,
                                    .out = heads.view()});
       }},
      {"im2col_3x3", [&](ExecContext& ctx) {
         ops::im2col_3x3(ctx, {x.view(), 2, 2, 1, {}, taps.view()});
       }}};
  for (const auto& named_op : all) {
    SCOPED_TRACE(named_op.first);
    ExecContext ctx = f.ctx();
    const auto run = [&] { named_op.second(ctx); };
    expect_error(ErrorCode::kUnsupported, named_op.first + ": ", run);
    expect_error(ErrorCode::kUnsupported, cat("got ", to_string(other)), run);
  }
}

}  // namespace
}  // namespace fovea::test
