// Checks of the attention op; the workspace lives in the arena until the op has been submitted,
// which is long enough: later work on the same stream runs after it.
#include "ops/attention.h"

#include <cmath>

#include "ops/arg_check.h"
#include "ops/kernels.h"

namespace fovea::ops {

namespace {

constexpr const char* kOp = "attention";
constexpr std::int64_t kHeadDimMultiple = 8;

void check(const AttentionArgs& args) {
  FOVEA_CHECK(args.num_heads > 0, kInvalidArgument, kOp, ": num_heads must be > 0, got ",
              args.num_heads);
  FOVEA_CHECK(args.head_dim > 0 && args.head_dim % kHeadDimMultiple == 0, kInvalidArgument, kOp,
              ": head_dim must be a positive multiple of ", kHeadDimMultiple, ", got ",
              args.head_dim);
  FOVEA_CHECK(std::isfinite(args.scale), kInvalidArgument, kOp, ": scale must be finite, got ",
              args.scale);
  check_activation(kOp, "qkv", args.qkv, 2);
  const std::int64_t rows = args.qkv.shape[0];
  const std::int64_t width = args.num_heads * args.head_dim;
  check_tensor(kOp, "qkv", args.qkv, args.qkv.dtype, {rows, 3 * width});
  check_tensor(kOp, "out", args.out, args.qkv.dtype, {rows, width});
  check_disjoint(kOp, "out", args.out, "qkv", args.qkv);
  FOVEA_CHECK(args.cu_seqlens.shape.rank() == 1 && args.cu_seqlens.shape[0] >= 1, kInvalidArgument,
              kOp, ": cu_seqlens must be int32 [sequences + 1], got shape ", args.cu_seqlens.shape);
  check_tensor(kOp, "cu_seqlens", args.cu_seqlens, DType::kI32, {args.cu_seqlens.shape[0]});
  FOVEA_CHECK(args.max_seqlen >= 0 && args.max_seqlen <= rows, kInvalidArgument, kOp,
              ": max_seqlen must be in [0, ", rows, "], got ", args.max_seqlen);
  if (args.cos || args.sin) {
    check_tensor(kOp, "cos", args.cos, DType::kF32, {rows, args.head_dim / 2});
    check_tensor(kOp, "sin", args.sin, DType::kF32, {rows, args.head_dim / 2});
  }
  if (!args.x && args.projection == nullptr) return;
  FOVEA_CHECK(args.projection != nullptr && args.projection->out_features == 3 * width,
              kInvalidArgument, kOp, ": x needs a projection to ", 3 * width, " features, got ",
              args.projection == nullptr ? 0 : args.projection->out_features);
  check_tensor(kOp, "x", args.x, args.qkv.dtype, {rows, args.projection->in_features});
  check_disjoint(kOp, "qkv", args.qkv, "x", args.x);
}

}  // namespace

void attention(ExecContext& ctx, const AttentionArgs& args) {
  check(args);
  if (args.max_seqlen == 0 || args.cu_seqlens.shape[0] == 1) return;
  const Arena::Scope scope(ctx.arena);
  AttentionArgs with_workspace = args;
  const auto bytes = static_cast<std::int64_t>(ctx.kernels.attention_workspace(args));
  with_workspace.workspace = ctx.arena.tensor(DType::kU8, {bytes});
  with_workspace.is_recorded = ctx.is_recorded;
  ctx.kernels.attention(ctx.stream, with_workspace);
}

}  // namespace fovea::ops
