// Checks of attention between two lists of rows.
#include "fovea/tower/ops/cross_attention.h"

#include <cmath>

#include "core/check.h"
#include "ops/arg_check.h"
#include "ops/kernels.h"
#include "ops/steps.h"

namespace fovea::ops {

void cross_attention(ExecContext& ctx, const CrossAttentionArgs& args) {
  constexpr const char* kOp = "cross_attention";
  FOVEA_CHECK(args.num_heads > 0, kInvalidArgument, kOp, ": num_heads must be > 0, got ",
              args.num_heads);
  FOVEA_CHECK(args.head_dim > 0 && args.head_dim % kHeadDimMultiple == 0, kInvalidArgument, kOp,
              ": head_dim must be a positive multiple of ", kHeadDimMultiple, ", got ",
              args.head_dim);
  FOVEA_CHECK(std::isfinite(args.scale), kInvalidArgument, kOp, ": scale must be finite, got ",
              args.scale);
  check_activation(kOp, "q", args.q, 2);
  check_activation(kOp, "kv", args.kv, 2);
  const std::int64_t width = args.num_heads * args.head_dim;
  check_tensor(kOp, "q", args.q, args.q.dtype, {args.q.shape[0], width});
  check_tensor(kOp, "kv", args.kv, args.q.dtype, {args.kv.shape[0], 2 * width});
  check_tensor(kOp, "out", args.out, args.q.dtype, {args.q.shape[0], width});
  check_disjoint(kOp, "out", args.out, "q", args.q);
  check_disjoint(kOp, "out", args.out, "kv", args.kv);
  const Shape& offsets = args.cu_queries.shape;
  FOVEA_CHECK(offsets.rank() == 1 && offsets[0] >= 1, kInvalidArgument, kOp,
              ": cu_queries must be int32 [sequences + 1], got shape ", offsets);
  check_tensor(kOp, "cu_queries", args.cu_queries, DType::kI32, offsets);
  check_tensor(kOp, "cu_keys", args.cu_keys, DType::kI32, offsets);
  if (args.q.shape[0] == 0 || offsets[0] == 1) return;
  ctx.kernels.cross_attention(ctx.submission(), args);
}

}  // namespace fovea::ops
