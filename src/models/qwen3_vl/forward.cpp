// The vision tower of Qwen3-VL (and Qwen3.5, which has no deepstack levels), in the order of the
// data.
#include "models/qwen3_vl/forward.h"

#include <algorithm>
#include <cmath>

#include "ops/attention.h"
#include "ops/norm.h"
#include "ops/patch.h"
#include "ops/rope.h"

namespace fovea::qwen3_vl {

namespace {

constexpr float kNormEpsilon = 1e-6f;  // fixed in the reference, not in config.json

/// What every block needs besides its weights and x.
struct Sequences {
  ConstTensorView cu_seqlens;
  LiveRows seqs;
  LiveRows patches;
  ConstTensorView cos;  ///< [patches, head_dim / 2] f32
  ConstTensorView sin;  ///< [patches, head_dim / 2] f32
};

void layer_norm(ExecContext& ctx, const blocks::NormWeights& w, ConstTensorView x, LiveRows rows,
                TensorView out) {
  ops::layer_norm(ctx, {.x = x,
                        .weight = w.weight.view(),
                        .bias = w.bias.view(),
                        .epsilon = kNormEpsilon,
                        .rows = rows,
                        .out = out});
}

/// x = conv3d(normalise(pixels)) + interpolated position embedding; [patches, hidden]
void embed_patches(ExecContext& ctx, const Config& c, const Weights& w, const Constants& constants,
                   const Inputs& in, TensorView x) {
  const Arena::Scope scope(ctx.arena);
  const TensorView patches = ctx.arena.tensor(x.dtype, {x.shape[0], c.patch_dim()});
  ops::patchify(ctx, {.pixels = in.pixels,
                      .sources = in.sources,
                      .table = constants.normalize.view(),
                      .patch_size = c.patch_size,
                      .temporal_patch_size = c.temporal_patch_size,
                      .rows = in.patches,
                      .out = patches});
  ops::linear(ctx, {.x = patches, .weight = w.patch_embed, .rows = in.patches, .out = x});
  ops::add_positions_bilinear(ctx, {.table = w.pos_embed.view(),
                                    .positions = in.positions,
                                    .side = c.position_side(),
                                    .rows = in.patches,
                                    .x = x});
}

/// x += proj(attention(rope(qkv(normed)))); normed and x [patches, hidden]
void attention(ExecContext& ctx, const Config& c, const BlockWeights& w, const Sequences& s,
               ConstTensorView normed, TensorView x) {
  const std::int64_t rows = x.shape[0];
  const TensorView qkv = ctx.arena.tensor(x.dtype, {rows, 3 * c.hidden_size});
  const TensorView mixed = ctx.arena.tensor(x.dtype, {rows, c.hidden_size});
  ops::attention(ctx, {.x = normed,
                       .projection = &w.qkv,
                       .qkv = qkv,
                       .cos = s.cos,
                       .sin = s.sin,
                       .cu_seqlens = s.cu_seqlens,
                       .seqs = s.seqs,
                       .num_heads = c.num_heads,
                       .head_dim = c.head_dim(),
                       .scale = 1.0f / std::sqrt(static_cast<float>(c.head_dim())),
                       // Not the longest picture: what the processor allows exceeds the rows of any
                       // graph, and an exact bound in eager runs alone would let them choose
                       // another kernel than replays.
                       .max_seqlen = rows,
                       .rows = s.patches,
                       .out = mixed});
  ops::linear(ctx, {.x = mixed, .weight = w.proj, .residual = x, .rows = s.patches, .out = x});
}

/// x += fc2(act(fc1(normed))); normed and x [patches, hidden]
void mlp(ExecContext& ctx, const Config& c, const BlockWeights& w, LiveRows patches,
         ConstTensorView normed, TensorView x) {
  const TensorView wide = ctx.arena.tensor(x.dtype, {x.shape[0], c.intermediate_size});
  ops::linear(
      ctx,
      {.x = normed, .weight = w.fc1, .activation = c.hidden_act, .rows = patches, .out = wide});
  ops::linear(ctx, {.x = wide, .weight = w.fc2, .residual = x, .rows = patches, .out = x});
}

/// One pre-norm block; x [patches, hidden] is updated in place.
void block(ExecContext& ctx, const Config& c, const BlockWeights& w, const Sequences& s,
           TensorView x) {
  const Arena::Scope scope(ctx.arena);
  const TensorView normed = ctx.arena.tensor(x.dtype, x.shape);

  // x = x + attention(LN1(x))
  {
    const Arena::Scope inner(ctx.arena);
    layer_norm(ctx, w.norm1, x, s.patches, normed);
    attention(ctx, c, w, s, normed, x);
  }
  // x = x + mlp(LN2(x))
  layer_norm(ctx, w.norm2, x, s.patches, normed);
  mlp(ctx, c, w, s.patches, normed, x);
}

/// out[:, column...] = fc2(gelu_erf(fc1(joined))); joined [tokens, merge_area * hidden], already
/// normalised
void merge(ExecContext& ctx, const MergerWeights& w, LiveRows tokens, ConstTensorView joined,
           TensorView wide, std::int64_t column, TensorView out) {
  ops::linear(ctx, {.x = joined,
                    .weight = w.fc1,
                    .activation = ops::Activation::kGeluErf,
                    .rows = tokens,
                    .out = wide});
  ops::linear(ctx, {.x = wide, .weight = w.fc2, .rows = tokens, .out = out, .out_column = column});
}

}  // namespace

void forward(ExecContext& ctx, const Config& c, const Weights& w, const Constants& constants,
             const Inputs& in, TensorView out) {
  const std::int64_t tokens = out.shape[0];
  const std::int64_t patches = tokens * c.merge_area();
  const std::int64_t joined_width = c.merge_area() * c.hidden_size;
  const Arena::Scope scope(ctx.arena);

  const TensorView x = ctx.arena.tensor(out.dtype, {patches, c.hidden_size});
  const TensorView cos = ctx.arena.tensor(DType::kF32, {patches, c.head_dim() / 2});
  const TensorView sin = ctx.arena.tensor(DType::kF32, {patches, c.head_dim() / 2});
  embed_patches(ctx, c, w, constants, in, x);
  ops::rope_angles(ctx, {.positions = in.positions,
                         .inv_freq = constants.inv_freq.view(),
                         .rows = in.patches,
                         .cos = cos,
                         .sin = sin});
  const Sequences sequences{in.cu_seqlens, in.seqs, in.patches, cos, sin};

  // Deepstack mergers read the residual stream between blocks. Their norm takes a snapshot of it,
  // so the two products can overlap with the blocks that follow.
  ExecContext side = ctx.on_side();
  const bool has_deepstack = !w.deepstack_mergers.empty();
  const Shape joined_shape{tokens, joined_width};
  const TensorView side_wide =
      has_deepstack ? ctx.arena.tensor(out.dtype, joined_shape) : TensorView{};

  for (std::int64_t l = 0; l < c.depth; ++l) {
    block(ctx, c, w.blocks[static_cast<std::size_t>(l)], sequences, x);
    const auto tap = std::ranges::find(c.deepstack_visual_indexes, l);
    if (tap == c.deepstack_visual_indexes.end()) continue;
    // deepstack[k] = merger_k(LN over joined rows(x))
    const auto k = tap - c.deepstack_visual_indexes.begin();
    const MergerWeights& merger = w.deepstack_mergers[static_cast<std::size_t>(k)];
    const TensorView joined = ctx.arena.tensor(out.dtype, joined_shape);
    layer_norm(ctx, merger.norm, x.reshaped(joined_shape), in.tokens, joined);
    side.stream.wait_for(ctx.stream);
    merge(side, merger, in.tokens, joined, side_wide, (k + 1) * c.out_hidden_size, out);
  }

  // out = merger(join(LN(x)))
  const TensorView normed = ctx.arena.tensor(out.dtype, x.shape);
  const TensorView wide = ctx.arena.tensor(out.dtype, joined_shape);
  layer_norm(ctx, w.merger.norm, x, in.patches, normed);
  merge(ctx, w.merger, in.tokens, normed.reshaped(joined_shape), wide, 0, out);
  if (has_deepstack) ctx.stream.wait_for(ctx.side);
}

}  // namespace fovea::qwen3_vl
