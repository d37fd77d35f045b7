// The Pixtral tower and its projector in the order of the data.
#include "fovea/tower/ops/linear.h"
#include "models/common/grid/inputs.h"
#include "models/mistral3/model.h"

namespace fovea::mistral3 {

namespace {

/// layer(join(RMS(x))), [tokens, hidden_size], from ctx.arena in the scope of the caller. Changes
/// x.
TensorView joined(ExecContext& ctx, const Config& c, const PatchMerger& merger,
                  const common::GridInputs& in, TensorView x) {
  const std::int64_t tokens = x.shape[0] / c.grid.merge_area();
  const TensorView out = ctx.arena.tensor(x.dtype, {tokens, c.hidden_size});
  common::norm(ctx, merger.norm, x, in.patches, x);
  ops::linear(ctx, {.x = x.reshaped({tokens, c.joined_width()}),
                    .weight = merger.layer,
                    .rows = in.tokens,
                    .out = out});
  return out;
}

}  // namespace

void forward(ExecContext& ctx, const Config& c, const Weights& w, const common::GridInputs& in,
             TensorView out) {
  const std::int64_t patches = out.shape[0] * c.grid.merge_area();
  const Arena::Scope scope(ctx.arena);

  // x = RMS(conv2d(normalise(pixels))), [patches, hidden_size]
  const TensorView x = ctx.arena.tensor(out.dtype, {patches, c.hidden_size});
  common::embed_patches(ctx, c.grid, w.patch_conv, in, x);
  common::norm(ctx, w.ln_pre, x, in.patches, x);
  const common::AttendedRows rows = common::rotated_rows(ctx, in, w.inv_freq, patches);

  // x = x + attention(RMS1(x)); x = x + mlp(RMS2(x))
  for (const common::GatedBlock& block : w.blocks) common::add_block(ctx, block, rows, x);

  // out = projector(x), of joined patches but for Pixtral
  const TensorView y = w.merger ? joined(ctx, c, *w.merger, in, x) : x;
  const TensorView wide = ctx.arena.tensor(out.dtype, out.shape);
  common::mlp(ctx, w.projector, in.tokens, y, wide, out);
}

}  // namespace fovea::mistral3
