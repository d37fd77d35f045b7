// Patch embedding and rotary positions.
#include "models/blocks/grid/layers.h"

#include <cmath>
#include <vector>

#include "ops/patch.h"
#include "ops/rope.h"

namespace fovea::blocks {

Tensor inverse_frequencies(WeightLoader& loader, std::int64_t head_dim, double theta) {
  const std::int64_t dim = head_dim / 2;
  std::vector<float> values;  // in f32, as the reference computes them
  for (std::int64_t j = 0; j < dim / 2; ++j) {
    const float exponent = static_cast<float>(2 * j) / static_cast<float>(dim);
    values.push_back(1.0f / std::pow(static_cast<float>(theta), exponent));
  }
  return loader.constant(values, {dim / 2});
}

void embed_patches(ExecContext& ctx, const GridGeometry& geometry, const PatchEmbedding& embedding,
                   const GridInputs& in, TensorView x) {
  const Arena::Scope scope(ctx.arena);
  const TensorView patches = ctx.arena.tensor(x.dtype, {x.shape[0], geometry.patch_dim()});
  ops::patchify(ctx, {.pixels = in.pixels,
                      .sources = in.sources,
                      .table = embedding.normalize.view(),
                      .patch_size = geometry.patch_size,
                      .temporal_patch_size = geometry.temporal_patch_size,
                      .rows = in.patches,
                      .out = patches});
  ops::linear(ctx, {.x = patches, .weight = embedding.proj, .rows = in.patches, .out = x});
}

AttendedRows rotated_rows(ExecContext& ctx, const GridInputs& in, const Tensor& inv_freq,
                          std::int64_t num_rows) {
  const std::int64_t angles = 2 * inv_freq.shape[0];  // half a head
  const TensorView cos = ctx.arena.tensor(DType::kF32, {num_rows, angles});
  const TensorView sin = ctx.arena.tensor(DType::kF32, {num_rows, angles});
  ops::rope_angles(ctx, {.positions = in.positions,
                         .inv_freq = inv_freq.view(),
                         .rows = in.patches,
                         .cos = cos,
                         .sin = sin});
  // Not the longest image: what the processor allows exceeds the rows of any graph, and an exact
  // bound in eager runs alone would let them choose another kernel than replays.
  const std::int64_t max_seqlen = num_rows;
  return {.sequences = {.cu_seqlens = in.cu_seqlens,
                        .seqs = in.seqs,
                        .max_seqlen = max_seqlen,
                        .rows = in.patches},
          .cos = cos,
          .sin = sin};
}

}  // namespace fovea::blocks
