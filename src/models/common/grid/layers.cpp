// Patch embedding and rotary positions.
#include "models/common/grid/layers.h"

namespace fovea::common {

void embed_patches(ExecContext& ctx, const GridGeometry& geometry, const PatchEmbedding& embedding,
                   const GridInputs& in, TensorView x) {
  embed_patches(ctx, embedding,
                {.pixels = in.pixels,
                 .sources = in.sources,
                 .patch_size = geometry.patch_size,
                 .frames = geometry.temporal_patch_size,
                 .rows = in.patches},
                x);
}

AttendedRows rotated_rows(ExecContext& ctx, const GridInputs& in, const Tensor& inv_freq,
                          std::int64_t num_rows) {
  // Not the longest image: what the processor allows exceeds the rows of any graph, and an exact
  // bound in eager runs alone would let them choose another kernel than replays.
  const ops::Sequences sequences{
      .cu_seqlens = in.cu_seqlens, .seqs = in.seqs, .max_seqlen = num_rows, .rows = in.patches};
  return rotated_rows(ctx, sequences, in.positions, inv_freq);
}

}  // namespace fovea::common
