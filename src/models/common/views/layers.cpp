// Patches and class rows of square views.
#include "models/common/views/layers.h"

#include <algorithm>

#include "fovea/tower/ops/rows.h"

namespace fovea::common {

void embed_patches(ExecContext& ctx, const ViewBatch& in, const PatchEmbedding& embedding,
                   TensorView x) {
  embed_patches(ctx, embedding,
                {.pixels = in.pixels,
                 .sources = in.sources,
                 .patch_size = in.view.patch_px,
                 .frames = in.view.planes,
                 .rows = in.patches},
                x);
}

void join_sequences(ExecContext& ctx, const ViewBatch& in, const Tensor& class_rows,
                    ConstTensorView patches, TensorView x) {
  const ViewSequence& sequence = in.sequence;
  ops::copy_row_blocks(ctx, {.x = class_rows.view(),
                             .x_block_rows = 0,
                             .count = sequence.class_rows,
                             .blocks = in.views,
                             .out = x,
                             .out_block_rows = sequence.rows(),
                             .out_first = sequence.first_class_row()});
  ops::copy_row_blocks(ctx, {.x = patches,
                             .x_block_rows = sequence.patches,
                             .count = sequence.patches,
                             .blocks = in.views,
                             .out = x,
                             .out_block_rows = sequence.rows(),
                             .out_first = sequence.first_patch});
}

void make_sequences(ExecContext& ctx, const ViewBatch& in, const Tensor& class_rows,
                    const Tensor& positions, ConstTensorView patches, TensorView x) {
  join_sequences(ctx, in, class_rows, patches, x);
  ops::add_table(ctx, {.table = positions.view(), .rows = in.rows, .x = x});
}

void embed_views(ExecContext& ctx, const ViewBatch& in, const PatchEmbedding& embedding,
                 const Tensor& class_rows, const Tensor& positions, TensorView x) {
  const Arena::Scope scope(ctx.arena);
  const TensorView patches = ctx.arena.tensor(x.dtype, {in.sources.shape[0], x.shape[1]});
  embed_patches(ctx, in, embedding, patches);
  make_sequences(ctx, in, class_rows, positions, patches, x);
}

void take_patches(ExecContext& ctx, const ViewBatch& in, ConstTensorView x, TensorView out) {
  ops::copy_row_blocks(ctx, {.x = x,
                             .x_block_rows = in.sequence.rows(),
                             .x_first = in.sequence.first_patch,
                             .count = in.sequence.patches,
                             .blocks = in.views,
                             .out = out,
                             .out_block_rows = in.sequence.patches});
}

void take_first_rows(ExecContext& ctx, const ViewBatch& in, ConstTensorView x, TensorView out) {
  ops::copy_row_blocks(ctx, {.x = x,
                             .x_block_rows = in.sequence.rows(),
                             .count = 1,
                             .blocks = in.views,
                             .out = out,
                             .out_block_rows = 1});
}

void put_vectors(ExecContext& ctx, const ViewBatch& in, ConstTensorView vectors, TensorView out) {
  ops::copy_row_blocks(ctx, {.x = vectors,
                             .x_block_rows = 1,
                             .count = 1,
                             .blocks = in.views,
                             .out = out,
                             .out_block_rows = out.shape[0] / in.count});
}

AttendedRows attended_rows(const ViewBatch& in) {
  return {.sequences = {.cu_seqlens = in.cu_seqlens,
                        .seqs = in.views,
                        .max_seqlen = in.sequence.rows(),
                        .rows = in.rows}};
}

std::vector<float> in_patch_order(const SquareView& view, std::int64_t first_patch,
                                  std::int64_t features, std::span<const float> table) {
  std::vector<float> ordered(table.begin(), table.end());
  auto next = ordered.begin() + first_patch * features;
  for_each_patch(view, [&](std::int64_t y, std::int64_t x) {
    const std::int64_t row = first_patch + y * view.grid() + x;
    next = std::copy_n(table.begin() + row * features, features, next);
  });
  return ordered;
}

}  // namespace fovea::common
