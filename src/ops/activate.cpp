// Checks of activations on their own.
#include "fovea/tower/ops/activate.h"

#include "ops/arg_check.h"
#include "ops/kernels.h"

namespace fovea::ops {

void activate(ExecContext& ctx, const ActivateArgs& args) {
  check_activation("activate", "x", args.x, 2);
  if (args.x.shape[0] == 0) return;
  ctx.kernels.activate(ctx.submission(), args);
}

}  // namespace fovea::ops
