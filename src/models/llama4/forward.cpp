// The vision tower of Llama 4 in the order of the data. Patches come in the order of tokens, the
// class token after those of its tile.
#include "models/llama4/model.h"

#include "models/common/rope.h"
#include "models/common/views/layers.h"

namespace fovea::llama4 {

namespace {

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

common::ViewLayout layout_of(const Config& c) {
  return {.view = c.view,
          .sequence = {.patches = c.view.patches(), .first_patch = 0},
          .tokens = c.view.tokens(),
          .stages = {c.view.tokens()},
          .chunk_stages = {}};
}

void write_positions(const common::SquareView& view, std::int64_t tiles, std::int32_t* positions) {
  const auto add = [&](std::int64_t y, std::int64_t x) {
    for (const std::int64_t value : {y, x, std::int64_t{0}, std::int64_t{0}}) {
      *positions++ = static_cast<std::int32_t>(value);
    }
  };
  for (std::int64_t tile = 0; tile < tiles; ++tile) {
    common::for_each_patch(view, [&](std::int64_t y, std::int64_t x) { add(y + 1, x + 1); });
    add(0, 0);
  }
}

void forward(ExecContext& ctx, const Config& c, const Weights& w, const common::ViewBatch& in,
             ConstTensorView positions, TensorView out) {
  const Arena::Scope scope(ctx.arena);

  // x = layernorm_pre([conv(normalise(pixels)); class_embedding] + positional_embedding)
  const TensorView x = ctx.arena.tensor(out.dtype, {in.count * in.sequence.rows(), c.hidden_size});
  common::embed_views(ctx, in, w.patch_embedding, w.class_embedding, w.positional_embedding, x);
  common::norm(ctx, w.layernorm_pre, x, in.rows, x);

  // x = x + attention(LN(x)); x = x + mlp(LN(x))
  const common::AttendedRows rows =
      common::rotated_rows(ctx, common::attended_rows(in).sequences, positions, w.inv_freq);
  for (const common::Block& layer : w.layers) common::add_block(ctx, layer, rows, x);

  // out = project(join(layernorm_post(x without class tokens)))
  const TensorView patches =
      ctx.arena.tensor(out.dtype, {in.count * in.sequence.patches, c.hidden_size});
  common::take_patches(ctx, in, x, patches);
  common::norm(ctx, w.layernorm_post, patches, in.patches, patches);
  project(ctx, c, w, in.stages.front(), patches.reshaped({out.shape[0], c.joined_width()}), out);
}

}  // namespace fovea::llama4
