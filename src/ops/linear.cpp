// Checks and dispatch of the linear layer, and of two in a row.
#include "fovea/tower/ops/linear.h"

#include "core/check.h"
#include "ops/arg_check.h"
#include "ops/kernels.h"
#include "ops/quantized.h"
#include "ops/steps.h"

namespace fovea::ops {

namespace {

bool overlap(const ConstTensorView& a, const ConstTensorView& b) {
  return a.data < b.data + b.bytes() && b.data < a.data + a.bytes();
}

/// The residual may be the very elements that are written, or share no memory with them: anything
/// between would be read after it was changed.
bool may_be_residual(const LinearArgs& args) {
  const bool same_elements = args.residual.data == args.out.data && args.out_column == 0 &&
                             args.residual.shape == args.out.shape;
  return same_elements || !overlap(args.residual, args.out);
}

}  // namespace

void check_linear(const LinearArgs& args) {
  const PackedLinear& weight = args.weight;
  check_layer_input("linear", args.x, weight);
  const std::int64_t rows = args.x.shape[0];
  check_activation("linear", "out", args.out, 2);
  const bool is_quantized = args.x.dtype == DType::kF8E4M3;
  FOVEA_CHECK(is_quantized || args.out.dtype == args.x.dtype, kInvalidArgument,
              "linear: out must be ", to_string(args.x.dtype), " as x, got ",
              to_string(args.out.dtype));
  FOVEA_CHECK(args.out.shape[0] == rows, kInvalidArgument, "linear: out must be [", rows,
              ", columns], got ", args.out.shape);
  FOVEA_CHECK(args.out_column >= 0 && weight.out_features <= args.out.shape[1] &&
                  args.out_column <= args.out.shape[1] - weight.out_features,
              kInvalidArgument, "linear: ", weight.out_features, " columns from column ",
              args.out_column, " do not fit out ", args.out.shape);
  FOVEA_CHECK(!overlap(args.x, args.out), kInvalidArgument, "linear: out must not overlap x");
  if (!args.residual) return;
  check_tensor("linear", "residual", args.residual, args.out.dtype, {rows, weight.out_features});
  FOVEA_CHECK(may_be_residual(args), kInvalidArgument,
              "linear: residual must be out itself or not overlap it");
}

PackedLinear pack_linear(Device& device, ConstTensorView weight, ConstTensorView bias,
                         WeightFormat format) {
  check_activation("pack_linear", "weight", weight, 2);
  FOVEA_CHECK(weight.shape[0] > 0, kInvalidArgument,
              "pack_linear: weight must have out_features, got shape ", weight.shape);
  if (bias) {
    check_activation("pack_linear", "bias", bias, 1);
    FOVEA_CHECK(bias.shape[0] == weight.shape[0], kInvalidArgument, "pack_linear: bias must be [",
                weight.shape[0], "], got ", bias.shape);
  }
  return device.kernels().pack_linear(device, weight, bias, format);
}

TensorView input_rows(ExecContext& ctx, const PackedLinear& layer, const ConstTensorView& like) {
  if (layer.dtype == DType::kF8E4M3) return quantized_tensor(ctx.arena, like.shape);
  return ctx.arena.tensor(like.dtype, like.shape);
}

void linear(ExecContext& ctx, const LinearArgs& args) {
  check_linear(args);
  if (args.x.shape[0] == 0) return;
  ctx.kernels.linear(ctx.submission(), args);
}

void mlp(ExecContext& ctx, const MlpArgs& args) {
  check_linear(first_layer(args));
  check_linear(second_layer(args));
  check_disjoint("mlp", "x", args.x, "out", args.out);
  if (args.x.shape[0] == 0) return;
  ctx.kernels.mlp(ctx.submission(), args);
}

}  // namespace fovea::ops
