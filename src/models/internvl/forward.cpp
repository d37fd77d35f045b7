// InternViT and the projector in the order of the data.
#include "models/internvl/model.h"

#include "fovea/tower/ops/rows.h"
#include "models/common/views/layers.h"

namespace fovea::internvl {

namespace {

/// Normalises q and k, the first two of the three parts of every row of qkv [rows, 3 hidden_size].
void norm_q_and_k(ExecContext& ctx, const std::array<common::RmsNorm, 2>& norms, LiveRows rows,
                  TensorView qkv) {
  const Arena::Scope scope(ctx.arena);
  const std::int64_t width = qkv.shape[1] / 3;
  const TensorView parts = qkv.reshaped({3 * qkv.shape[0], width});
  const TensorView x = ctx.arena.tensor(qkv.dtype, {qkv.shape[0], width});
  for (const std::int64_t part : {0, 1}) {
    common::take_parts(ctx, qkv, part, 1, rows, x);
    common::norm(ctx, norms[static_cast<std::size_t>(part)], x, rows, x);
    ops::copy_row_blocks(ctx, {.x = x,
                               .x_block_rows = 1,
                               .count = 1,
                               .blocks = rows,
                               .out = parts,
                               .out_block_rows = 3,
                               .out_first = part});
  }
}

}  // namespace

// This and the next two are not in the unnamed namespace: common::add_block finds them by the
// layer.
static void norm(ExecContext& ctx, const Norm& layer, ConstTensorView x, LiveRows rows,
                 TensorView out) {
  std::visit([&](const auto& kind) { common::norm(ctx, kind, x, rows, out); }, layer.kind);
}

static const ops::PackedLinear& first_layer(const Attention& layer) { return layer.plain.qkv; }

/// x += proj(attention(norm(q), norm(k), v)); normed and x [rows, hidden_size]
static void add_attention(ExecContext& ctx, const Attention& layer,
                          const common::AttendedRows& rows, ConstTensorView normed, TensorView x) {
  const common::Attention& attn = layer.plain;
  if (!layer.qk_norms) return common::add_attention(ctx, attn, rows, normed, x);
  const Arena::Scope scope(ctx.arena);
  const TensorView qkv = ctx.arena.tensor(x.dtype, {x.shape[0], attn.qkv.out_features});
  const TensorView mixed = ctx.arena.tensor(x.dtype, x.shape);
  ops::linear(ctx, {.x = normed, .weight = attn.qkv, .rows = rows.live(), .out = qkv});
  norm_q_and_k(ctx, *layer.qk_norms, rows.live(), qkv);
  common::mix(ctx, attn, rows.sequences, qkv, mixed);
  ops::linear(ctx, {.x = mixed, .weight = attn.proj, .residual = x, .rows = rows.live(), .out = x});
}

void forward(ExecContext& ctx, const Config& c, const Weights& w, const common::ViewInputs& inputs,
             TensorView out) {
  const common::ViewBatch& in = inputs.all;
  const Arena::Scope scope(ctx.arena);
  // x = [class embedding; conv(normalise(pixels))] + positions
  const TensorView x = ctx.arena.tensor(out.dtype, {in.count * in.sequence.rows(), c.hidden_size});
  common::embed_views(ctx, in, w.patch_embedding, w.class_embedding, w.position_embedding, x);
  const common::AttendedRows rows = common::attended_rows(in);
  // x = x + ls1 attention(norm1(x)); x = x + ls2 mlp(norm2(x))
  for (const Layer& layer : w.layers) common::add_block(ctx, layer, rows, x);

  // Without its class token a view is tokens of 2 x 2 neighbouring rows.
  const TensorView kept =
      ctx.arena.tensor(out.dtype, {in.count * in.sequence.patches, c.hidden_size});
  common::take_patches(ctx, in, x, kept);

  // out = mlp(LN(join(x)))
  const LiveRows tokens = in.stages.front();
  const TensorView joined = kept.reshaped({out.shape[0], c.joined_width()});
  const TensorView wide = ctx.arena.tensor(out.dtype, {out.shape[0], c.llm_hidden_size});
  common::norm(ctx, w.projector_norm, joined, tokens, joined);
  common::mlp(ctx, w.projector, tokens, joined, wide, out);
}

}  // namespace fovea::internvl
