// The vision tower of Qwen2.5-VL in the order of the data.
#include "models/qwen2_5_vl/model.h"

#include <algorithm>

#include "fovea/tower/ops/patch.h"
#include "models/common/grid/inputs.h"

namespace fovea::qwen2_5_vl {

namespace {

/// The rows of frames, cut into windows.
common::AttendedRows cut(const common::AttendedRows& frames, const Config& c,
                         const WindowInputs& windows) {
  const std::int64_t most = c.window_side() * c.window_side() * c.grid.merge_area();
  return {.sequences = {.cu_seqlens = windows.cu_seqlens,
                        .seqs = windows.windows,
                        .max_seqlen = std::min(most, frames.sequences.max_seqlen),
                        .rows = frames.sequences.rows},
          .cos = frames.cos,
          .sin = frames.sin};
}

}  // namespace

void forward(ExecContext& ctx, const Config& c, const Weights& w, const common::GridInputs& in,
             const WindowInputs& windows, TensorView out) {
  const std::int64_t tokens = out.shape[0];
  const std::int64_t patches = tokens * c.grid.merge_area();
  const Shape joined_shape{tokens, c.joined_width()};
  const Arena::Scope scope(ctx.arena);

  // x = conv3d(normalise(pixels)), [patches, hidden_size], window after window
  const TensorView x = ctx.arena.tensor(out.dtype, {patches, c.hidden_size});
  common::embed_patches(ctx, c.grid, w.patch_embed, in, x);
  const common::AttendedRows in_frames = common::rotated_rows(ctx, in, w.inv_freq, patches);
  const common::AttendedRows in_windows = cut(in_frames, c, windows);

  // x = x + attention(RMS1(x)); x = x + mlp(RMS2(x))
  for (std::int64_t l = 0; l < c.depth; ++l) {
    const common::GatedBlock& block = w.blocks[static_cast<std::size_t>(l)];
    common::add_block(ctx, block, c.is_full(l) ? in_frames : in_windows, x);
  }

  // merged = mlp(join(RMS(x))), [tokens, out_hidden_size]; out[token] = merged[place of token]
  const TensorView normed = ctx.arena.tensor(out.dtype, x.shape);
  const TensorView wide = ctx.arena.tensor(out.dtype, joined_shape);
  const TensorView merged = ctx.arena.tensor(out.dtype, out.shape);
  common::norm(ctx, w.ln_q, x, in.patches, normed);
  common::mlp(ctx, w.merger, in.tokens, normed.reshaped(joined_shape), wide, merged);
  ops::gather_rows(ctx, {.x = merged, .index = windows.places, .rows = in.tokens, .out = out});
}

}  // namespace fovea::qwen2_5_vl
