// Checks and dispatch of the linear layer.
#include "ops/linear.h"

#include "core/check.h"
#include "ops/kernels.h"

namespace fovea::ops {

namespace {

bool is_float(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

bool overlap(ConstTensorView a, ConstTensorView b) {
  return a.data < b.data + b.bytes() && b.data < a.data + a.bytes();
}

/// The residual may be the very elements that are written, or share no memory with them: anything
/// between would be read after it was changed.
bool may_be_residual(const LinearArgs& args) {
  const bool same_elements = args.residual.data == args.out.data && args.out_column == 0 &&
                             args.residual.shape == args.out.shape;
  return same_elements || !overlap(args.residual, args.out);
}

void check_residual(const LinearArgs& args) {
  const Shape expected{args.x.shape[0], args.weight.out_features};
  FOVEA_CHECK(args.residual.shape == expected, kInvalidArgument, "linear: residual must be ",
              expected, ", got ", args.residual.shape);
  FOVEA_CHECK(args.residual.dtype == args.x.dtype, kInvalidArgument, "linear: residual must be ",
              to_string(args.x.dtype), " as x, got ", to_string(args.residual.dtype));
  FOVEA_CHECK(may_be_residual(args), kInvalidArgument,
              "linear: residual must be out itself or not overlap it");
}

void check(const LinearArgs& args) {
  FOVEA_CHECK(args.x.shape.rank() == 2 && args.x.shape[1] == args.weight.in_features,
              kInvalidArgument, "linear: x must be [rows, ", args.weight.in_features, "], got ",
              args.x.shape);
  FOVEA_CHECK(args.out.shape.rank() == 2 && args.out.shape[0] == args.x.shape[0], kInvalidArgument,
              "linear: out must be [", args.x.shape[0], ", columns], got ", args.out.shape);
  FOVEA_CHECK(args.out_column >= 0 && args.weight.out_features <= args.out.shape[1] &&
                  args.out_column <= args.out.shape[1] - args.weight.out_features,
              kInvalidArgument, "linear: ", args.weight.out_features, " columns from column ",
              args.out_column, " do not fit out ", args.out.shape);
  FOVEA_CHECK(is_float(args.x.dtype), kInvalidArgument, "linear: x must be a float tensor, got ",
              to_string(args.x.dtype));
  FOVEA_CHECK(args.out.dtype == args.x.dtype, kInvalidArgument, "linear: out must be ",
              to_string(args.x.dtype), " as x, got ", to_string(args.out.dtype));
  FOVEA_CHECK(!overlap(args.x, args.out), kInvalidArgument, "linear: out must not overlap x");
  if (args.residual) check_residual(args);
}

}  // namespace

PackedLinear pack_linear(Device& device, ConstTensorView weight, ConstTensorView bias) {
  FOVEA_CHECK(weight.shape.rank() == 2 && weight.shape.elements() > 0, kInvalidArgument,
              "pack_linear: weight must be [out_features, in_features], none of them 0, got ",
              weight.shape);
  FOVEA_CHECK(is_float(weight.dtype), kInvalidArgument,
              "pack_linear: weight must be a float tensor, got ", to_string(weight.dtype));
  if (bias) {
    FOVEA_CHECK(bias.shape == Shape{weight.shape[0]}, kInvalidArgument,
                "pack_linear: bias must be [", weight.shape[0], "], got ", bias.shape);
    FOVEA_CHECK(is_float(bias.dtype), kInvalidArgument,
                "pack_linear: bias must be a float tensor, got ", to_string(bias.dtype));
  }
  return device.kernels().pack_linear(device, weight, bias);
}

void linear(ExecContext& ctx, const LinearArgs& args) {
  check(args);
  if (args.x.shape[0] == 0) return;
  ctx.kernels.linear(ctx.stream, args);
}

}  // namespace fovea::ops
