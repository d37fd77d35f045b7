// The tower in the order of its data: sizes, weights, inputs, forward.
#include "vit.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

namespace vit {

namespace ops = fovea::ops;
using fovea::DType;
using fovea::LiveRows;
using fovea::TensorView;

namespace {

constexpr std::int64_t kPatchBytes = kPatch * kPatch * 3;

void require(bool holds, const std::string& otherwise) {
  if (!holds) throw fovea::Error(fovea::ErrorCode::kInvalidArgument, otherwise);
}

/// Layers by name.
struct Loader {
  fovea::TowerWeights& weights;

  [[nodiscard]] Norm norm(const std::string& name) const {
    return {weights.f32(name + ".weight", {kHidden}), weights.f32(name + ".bias", {kHidden})};
  }
  [[nodiscard]] Mlp mlp(const std::string& name, std::int64_t out) const {
    return {weights.linear(name + ".fc1", kWide, kHidden),
            weights.linear(name + ".fc2", out, kWide)};
  }
};

void layer_norm(fovea::ExecContext& ctx, const Norm& norm, TensorView x, LiveRows rows,
                TensorView out) {
  ops::layer_norm(ctx, {.x = x,
                        .weight = norm.weight.view(),
                        .bias = norm.bias.view(),
                        .epsilon = kEpsilon,
                        .rows = rows,
                        .out = out});
}

/// x += attention(norm1(x)); x += mlp(norm2(x)); x is [rows, kHidden].
void add_block(fovea::ExecContext& ctx, const Block& block, const ops::Sequences& sequences,
               TensorView x) {
  const fovea::Arena::Scope scope(ctx.arena);
  const std::int64_t rows = x.shape[0];
  const TensorView normed = ctx.arena.tensor(x.dtype, x.shape);
  const TensorView mixed = ctx.arena.tensor(x.dtype, x.shape);
  const TensorView wide = ctx.arena.tensor(x.dtype, {rows, 3 * kHidden});
  layer_norm(ctx, block.norm1, x, sequences.rows, normed);
  ops::projected_attention(ctx, {.x = normed,
                                 .projection = block.qkv,
                                 .qkv = wide,
                                 .sequences = sequences,
                                 .num_heads = kHeads,
                                 .head_dim = kHidden / kHeads,
                                 .scale = 1.0f / std::sqrt(float{kHidden / kHeads}),
                                 .out = mixed});
  ops::linear(ctx,
              {.x = mixed, .weight = block.proj, .residual = x, .rows = sequences.rows, .out = x});
  layer_norm(ctx, block.norm2, x, sequences.rows, normed);
  ops::mlp(ctx, {.x = normed,
                 .fc1 = block.mlp.fc1,
                 .fc2 = block.mlp.fc2,
                 .activation = ops::Activation::kGeluErf,
                 .residual = x,
                 .rows = sequences.rows,
                 .wide = ctx.arena.tensor(x.dtype, {rows, kWide}),
                 .out = x});
}

}  // namespace

fovea::ItemPlan Processor::plan_image(std::int64_t width_px, std::int64_t height_px) const {
  require(width_px > 0 && height_px > 0, "an image without pixels");
  const std::int64_t columns = std::clamp<std::int64_t>(width_px / kPatch, 1, kMaxSide);
  const std::int64_t rows = std::clamp<std::int64_t>(height_px / kPatch, 1, kMaxSide);
  fovea::ItemPlan plan;
  plan.source_width_px = width_px;
  plan.source_height_px = height_px;
  plan.resized_width_px = columns * kPatch;
  plan.resized_height_px = rows * kPatch;
  plan.grid = {1, rows, columns};
  plan.pixel_bytes = static_cast<std::size_t>(rows * columns * kPatchBytes);
  plan.spec = {.input_rows = rows * columns,
               .out_rows = rows * columns,
               .num_seqs = 1,
               .path_tokens = {rows * columns}};
  return plan;
}

/// The nearest pixel of the source; a real tower would filter.
void Processor::fill_frame(const fovea::ItemPlan& plan, std::int64_t index,
                           const fovea::RgbView& frame, std::span<std::uint8_t> out) const {
  require(index == 0 && frame.width_px == plan.source_width_px &&
              frame.height_px == plan.source_height_px && out.size() == plan.pixel_bytes,
          "not the planned image");
  std::uint8_t* to = out.data();
  for (std::int64_t y = 0; y < plan.resized_height_px; ++y) {
    const std::int64_t row = y * frame.height_px / plan.resized_height_px;
    for (std::int64_t x = 0; x < plan.resized_width_px; ++x) {
      const std::int64_t column = x * frame.width_px / plan.resized_width_px;
      to = std::copy_n(frame.rgb + (row * frame.width_px + column) * 3, 3, to);
    }
  }
}

Model::Model(fovea::TowerWeights& weights) {
  spec_.modalities = {fovea::Modality::kImage};
  spec_.main_width = kOut;
  spec_.out_width = kOut;
  spec_.min_token_budget = 16;
  spec_.max_token_budget = 256;

  std::vector<float> values(3 * 256);  // bytes to [-1, 1]
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i % 256) / 127.5f - 1.0f;
  }
  normalize_ = weights.constant(values, {3, 256});
  patch_ = weights.linear("patch", kHidden, kPatchBytes);
  positions_ = weights.f32("positions", {kMaxSide * kMaxSide, kHidden});
  const Loader load{weights};
  for (std::int64_t i = 0; i < kBlocks; ++i) {
    const std::string name = "blocks." + std::to_string(i) + ".";
    blocks_.push_back({.norm1 = load.norm(name + "norm1"),
                       .qkv = weights.linear(name + "qkv", 3 * kHidden, kHidden),
                       .proj = weights.linear(name + "proj", kHidden, kHidden),
                       .norm2 = load.norm(name + "norm2"),
                       .mlp = load.mlp(name + "mlp", kHidden)});
  }
  last_norm_ = load.norm("norm");
  projector_ = load.mlp("projector", kOut);
}

std::vector<fovea::BufferDecl> Model::inputs(fovea::PathId,
                                             const fovea::GraphCapacity& capacity) const {
  return {{"live", DType::kI32, {2}},  // patches and images of the batch
          {"cu_seqlens", DType::kI32, {capacity.seqs + 1}, fovea::PadRule::kRepeatLast},
          {"sources", DType::kI32, {capacity.tokens, 4}},    // ops::PatchifyArgs
          {"positions", DType::kI32, {capacity.tokens, 4}},  // ops::AddPositionsArgs
          {"pixels", DType::kU8, {capacity.tokens * kPatchBytes}}};
}

void Model::fill_inputs(fovea::PathId, const fovea::GraphCapacity&,
                        std::span<const fovea::ItemPart> parts, fovea::InputWriter& writer) const {
  const std::int64_t patches = std::accumulate(
      parts.begin(), parts.end(), std::int64_t{0},
      [](std::int64_t sum, const fovea::ItemPart& part) { return sum + part.patches(); });
  const auto narrow = [](std::int64_t value) { return static_cast<std::int32_t>(value); };
  auto* live = writer.claim("live", 2).as<std::int32_t>();
  auto* offsets = writer.claim("cu_seqlens", std::ssize(parts) + 1).as<std::int32_t>();
  auto* sources = writer.claim("sources", patches).as<std::int32_t>();
  auto* positions = writer.claim("positions", patches).as<std::int32_t>();
  std::byte* const pixels = writer.claim("pixels", patches * kPatchBytes).data;
  live[0] = narrow(patches);
  live[1] = narrow(std::ssize(parts));
  *offsets = 0;
  std::int64_t begin = 0;  // of the image, in bytes
  for (const fovea::ItemPart& part : parts) {
    const auto [frames, rows, columns] = part.plan().grid;
    const std::int64_t stride = columns * kPatch * 3;
    for (std::int64_t patch = 0; patch < rows * columns; ++patch) {
      const std::int64_t y = patch / columns;
      const std::int64_t x = patch % columns;
      for (const std::int64_t value :
           {begin + y * kPatch * stride + x * kPatch * 3, stride, std::int64_t{0}, frames - 1}) {
        *sources++ = narrow(value);
      }
      for (const std::int64_t value : {y, x, rows, columns}) *positions++ = narrow(value);
    }
    writer.copy(pixels + begin, part.pixels());
    begin += std::ssize(part.pixels());
    offsets[1] = offsets[0] + narrow(rows * columns);
    ++offsets;
  }
}

void Model::forward(fovea::ExecContext& ctx, fovea::PathId, const fovea::GraphCapacity& capacity,
                    const fovea::NamedTensors& in, TensorView out) const {
  const fovea::Arena::Scope scope(ctx.arena);
  const auto* live = in["live"].as<std::int32_t>();
  const LiveRows rows{live};
  const TensorView x = ctx.arena.tensor(out.dtype, {capacity.tokens, kHidden});
  const TensorView patches = ctx.arena.tensor(out.dtype, {capacity.tokens, kPatchBytes});
  ops::patchify(ctx, {.pixels = in["pixels"],
                      .sources = in["sources"],
                      .table = normalize_.view(),
                      .patch_size = kPatch,
                      .temporal_patch_size = 1,
                      .rows = rows,
                      .out = patches});
  ops::linear(ctx, {.x = patches, .weight = patch_, .rows = rows, .out = x});
  ops::add_positions_bilinear(ctx, {.table = positions_.view(),
                                    .positions = in["positions"],
                                    .table_height = kMaxSide,
                                    .table_width = kMaxSide,
                                    .rows = rows,
                                    .x = x});
  const ops::Sequences sequences{.cu_seqlens = in["cu_seqlens"],
                                 .seqs = {live + 1},
                                 .max_seqlen = std::min(capacity.tokens, kMaxSide * kMaxSide),
                                 .rows = rows};
  for (const Block& block : blocks_) add_block(ctx, block, sequences, x);
  layer_norm(ctx, last_norm_, x, rows, x);
  ops::mlp(ctx, {.x = x,
                 .fc1 = projector_.fc1,
                 .fc2 = projector_.fc2,
                 .activation = ops::Activation::kGeluErf,
                 .rows = rows,
                 .wide = ctx.arena.tensor(out.dtype, {capacity.tokens, kWide}),
                 .out = out});
}

}  // namespace vit
