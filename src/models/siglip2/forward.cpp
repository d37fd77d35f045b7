// SigLIP 2 NaFlex and its vector in the order of the data.
#include "fovea/tower/ops/patch.h"
#include "models/siglip2/model.h"

namespace fovea::siglip2 {

void forward(ExecContext& ctx, const Config& c, const Weights& w, const common::GridInputs& in,
             ConstTensorView sequence_of, TensorView out) {
  const Arena::Scope scope(ctx.arena);
  // x = linear(normalise(pixels)) + interpolated position embedding, [patches, hidden_size]
  const TensorView x = ctx.arena.tensor(out.dtype, out.shape);
  common::embed_patches(ctx, c.grid, w.patch_embedding, in, x);
  ops::add_positions_antialiased(ctx, {.table = w.position_embedding.view(),
                                       .positions = in.positions,
                                       .table_height = c.position_side(),
                                       .table_width = c.position_side(),
                                       .rows = in.patches,
                                       .x = x});

  // x = x + attention(LN1(x)); x = x + mlp(LN2(x)); each image attends to itself
  const ops::Sequences sequences{
      .cu_seqlens = in.cu_seqlens, .seqs = in.seqs, .max_seqlen = x.shape[0], .rows = in.patches};
  common::add_blocks(ctx, w.blocks, {.sequences = sequences}, x);

  // rows = LN(x)
  common::norm(ctx, w.post_layernorm, x, in.patches, w.head ? x : out);
  if (!w.head) return;
  // vector = head(rows), and divided by its norm where that is wanted, [images, hidden_size]
  const std::int64_t images = in.cu_seqlens.shape[0] - 1;
  const TensorView vectors = ctx.arena.tensor(out.dtype, {images, out.shape[1]});
  common::pool(ctx, *w.head, sequences, x, vectors);
  if (w.unit) common::norm(ctx, *w.unit, vectors, in.seqs, vectors);
  ops::gather_rows(ctx, {.x = vectors, .index = sequence_of, .rows = in.patches, .out = out});
}

}  // namespace fovea::siglip2
