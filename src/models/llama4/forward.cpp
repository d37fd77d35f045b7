// The vision tower of Llama 4 in the order of the data. Patches come in the order of tokens, the
// class token after those of its tile.
#include "models/llama4/forward.h"

#include "ops/patch.h"
#include "ops/rope.h"
#include "ops/rows.h"

namespace fovea::llama4 {

namespace {

constexpr const char* kPositions = "positions";

/// Live counts of the tiles of a batch.
enum Stage : std::size_t { kTiles, kPatches, kRows, kTokens };

blocks::ViewLayout layout_of(const Config& c) {
  return {.view = c.view,
          .seq_rows = c.seq_rows(),
          .stages = {1, c.view.patches(), c.seq_rows(), c.tokens()},
          .chunk_stages = {}};
}

/// x = [conv(normalise(pixels)); class_embedding] + positional_embedding, [tiles * seq_rows, D]
void embed(ExecContext& ctx, const Config& c, const Weights& w, const blocks::ViewInputs& in,
           TensorView x) {
  const std::int64_t num_patches = in.sources.shape[0];
  const Arena::Scope scope(ctx.arena);
  const TensorView pixels = ctx.arena.tensor(x.dtype, {num_patches, w.patch_embedding.in_features});
  const TensorView patches = ctx.arena.tensor(x.dtype, {num_patches, c.hidden_size});
  ops::patchify(ctx, {.pixels = in.pixels,
                      .sources = in.sources,
                      .table = w.normalize.view(),
                      .patch_size = c.view.patch_px,
                      .temporal_patch_size = 1,
                      .rows = in.live[kPatches],
                      .out = pixels});
  ops::linear(
      ctx, {.x = pixels, .weight = w.patch_embedding, .rows = in.live[kPatches], .out = patches});
  ops::copy_row_blocks(ctx, {.x = patches,
                             .x_block_rows = c.view.patches(),
                             .count = c.view.patches(),
                             .blocks = in.live[kTiles],
                             .out = x,
                             .out_block_rows = c.seq_rows()});
  ops::copy_row_blocks(ctx, {.x = w.class_embedding.view(),
                             .x_block_rows = 0,
                             .count = 1,
                             .blocks = in.live[kTiles],
                             .out = x,
                             .out_block_rows = c.seq_rows(),
                             .out_first = c.view.patches()});
  ops::add_table(ctx, {.table = w.positional_embedding.view(), .rows = in.live[kRows], .x = x});
}

/// The rows of `x` and the angles of their places, in the arena of the caller.
blocks::AttendedRows rotated_rows(ExecContext& ctx, const Config& c, const Weights& w,
                                  const Inputs& in) {
  const Shape angles{in.positions.shape[0], c.head_dim() / 2};
  const TensorView cos = ctx.arena.tensor(DType::kF32, angles);
  const TensorView sin = ctx.arena.tensor(DType::kF32, angles);
  ops::rope_angles(ctx, {.positions = in.positions,
                         .inv_freq = w.inv_freq.view(),
                         .rows = in.views.live[kRows],
                         .cos = cos,
                         .sin = sin});
  return {.sequences = {.cu_seqlens = in.views.cu_seqlens,
                        .seqs = in.views.live[kTiles],
                        .max_seqlen = c.seq_rows(),
                        .rows = in.views.live[kRows]},
          .cos = cos,
          .sin = sin};
}

/// out = linear_1(gelu(fc2(gelu(fc1(joined)))))
void project(ExecContext& ctx, const Config& c, const Weights& w, LiveRows tokens,
             ConstTensorView joined, TensorView out) {
  const Arena::Scope scope(ctx.arena);
  const Shape shape{out.shape[0], c.vision_output_dim};
  const TensorView first = ctx.arena.tensor(out.dtype, shape);
  const TensorView second = ctx.arena.tensor(out.dtype, shape);
  constexpr auto kGelu = ops::Activation::kGeluErf;
  ops::linear(
      ctx,
      {.x = joined, .weight = w.adapter_fc1, .activation = kGelu, .rows = tokens, .out = first});
  ops::linear(
      ctx,
      {.x = first, .weight = w.adapter_fc2, .activation = kGelu, .rows = tokens, .out = second});
  ops::linear(ctx, {.x = second, .weight = w.projector, .rows = tokens, .out = out});
}

}  // namespace

std::vector<BufferDecl> Inputs::declare(const Config& c, std::int64_t tiles) {
  std::vector<BufferDecl> buffers = blocks::ViewInputs::declare(layout_of(c), tiles);
  buffers.push_back({kPositions, DType::kI32, {tiles * c.seq_rows(), 4}});
  return buffers;
}

std::byte* Inputs::fill(const Config& c, std::int64_t capacity, std::int64_t tiles,
                        std::size_t num_items, InputWriter& writer) {
  std::byte* const pixels =
      blocks::ViewInputs::fill(layout_of(c), capacity, tiles, num_items, writer);
  auto* next = writer.claim(kPositions, tiles * c.seq_rows()).as<std::int32_t>();
  const auto add = [&](std::int64_t y, std::int64_t x) {
    for (const std::int64_t value : {y, x, std::int64_t{0}, std::int64_t{0}}) {
      *next++ = static_cast<std::int32_t>(value);
    }
  };
  for (std::int64_t tile = 0; tile < tiles; ++tile) {
    // Patches count from 1; the class token is at 0 and does not turn.
    blocks::for_each_patch(c.view, [&](std::int64_t y, std::int64_t x) { add(y + 1, x + 1); });
    add(0, 0);
  }
  return pixels;
}

Inputs Inputs::of(const Config& c, std::int64_t tiles, const NamedTensors& in) {
  return {.views = blocks::ViewInputs::of(layout_of(c), tiles, in), .positions = in[kPositions]};
}

void forward(ExecContext& ctx, const Config& c, const Weights& w, const Inputs& in,
             TensorView out) {
  const std::vector<LiveRows>& live = in.views.live;
  const std::int64_t num_patches = in.views.sources.shape[0];
  const Arena::Scope scope(ctx.arena);

  // x = layernorm_pre(embedding)
  const TensorView x = ctx.arena.tensor(out.dtype, {in.positions.shape[0], c.hidden_size});
  embed(ctx, c, w, in.views, x);
  blocks::norm(ctx, w.layernorm_pre, x, live[kRows], x);

  // x = x + attention(LN(x)); x = x + mlp(LN(x))
  const blocks::AttendedRows rows = rotated_rows(ctx, c, w, in);
  for (const blocks::Block& layer : w.layers) blocks::add_block(ctx, layer, rows, x);

  // out = project(join(layernorm_post(x without class tokens)))
  const TensorView patches = ctx.arena.tensor(out.dtype, {num_patches, c.hidden_size});
  ops::copy_row_blocks(ctx, {.x = x,
                             .x_block_rows = c.seq_rows(),
                             .count = c.view.patches(),
                             .blocks = live[kTiles],
                             .out = patches,
                             .out_block_rows = c.view.patches()});
  blocks::norm(ctx, w.layernorm_post, patches, live[kPatches], patches);
  const Shape joined{out.shape[0], c.merge_area() * c.hidden_size};
  project(ctx, c, w, live[kTokens], patches.reshaped(joined), out);
}

}  // namespace fovea::llama4
