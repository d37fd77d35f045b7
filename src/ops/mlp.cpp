// Checks and dispatch of two linear layers in a row.
#include "fovea/tower/ops/mlp.h"

#include "ops/arg_check.h"
#include "ops/kernels.h"
#include "ops/steps.h"

namespace fovea::ops {

void mlp(ExecContext& ctx, const MlpArgs& args) {
  check_linear(first_layer(args));
  check_linear(second_layer(args));
  check_disjoint("mlp", "x", args.x, "out", args.out);
  if (args.x.shape[0] == 0) return;
  ctx.kernels.mlp(ctx.submission(), args);
}

}  // namespace fovea::ops
