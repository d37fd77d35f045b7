#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "fovea/tower/core/tensor_view.h"
#include "fovea/tower/device/device.h"
#include "fovea/tower/ops/blocks.h"
#include "fovea/tower/ops/context.h"
#include "fovea/tower/ops/linear.h"
#include "fovea/tower/ops/projected_attention.h"

namespace fovea::common {

// The layers that vision transformers are made of: a type holds weights and hyper-parameters, a
// function runs it. A family's block is a struct of them, and overloading picks the arithmetic. All
// functions submit to ctx.stream and return at once; they are safe to capture. Intermediates come
// from ctx.arena and are released on return.

struct LayerNorm {
  Tensor weight;  ///< [features] f32
  Tensor bias;    ///< [features] f32
  float epsilon = 1e-6f;
};

struct RmsNorm {
  Tensor weight;  ///< [features] f32
  float epsilon = 1e-6f;
};

/// fc2(activation(fc1(x)))
struct Mlp {
  ops::PackedLinear fc1;  ///< features -> wide
  ops::PackedLinear fc2;  ///< wide -> features
  ops::Activation activation = ops::Activation::kGeluErf;
};

/// down(activation(gate(x)) * up(x)), gate and up limited as ops::gated says
struct GatedMlp {
  ops::PackedLinear gate_up;  ///< features -> gate | up, wide columns each
  ops::PackedLinear down;     ///< wide -> features
  ops::Activation activation = ops::Activation::kSilu;
  float limit = std::numeric_limits<float>::infinity();
};

struct Attention {
  ops::PackedLinear qkv;   ///< features -> q | k | v, heads contiguous in each
  ops::PackedLinear proj;  ///< heads * head_dim -> features
  std::int64_t num_heads = 1;
  RmsNorm q_norm = {};  ///< of every head of q, [head_dim], or neither this nor k_norm
  RmsNorm k_norm = {};  ///< of every head of k, with the same epsilon

  [[nodiscard]] std::int64_t head_dim() const { return proj.in_features / num_heads; }
};

/// A pre-norm block. Families with other norms or another MLP have a struct with the same members.
struct Block {
  LayerNorm norm1;
  LayerNorm norm2;
  Attention attn;
  Mlp mlp;
};

/// The same with gates, as common::add_block takes it, too.
struct GatedBlock {
  RmsNorm norm1;
  RmsNorm norm2;
  Attention attn;
  GatedMlp mlp;
};

/// Blocks that follow one another, with what the backend has prepared to compute several in one
/// piece of work, if it can.
struct BlockSequence {
  std::vector<Block> blocks;
  ops::PreparedBlocks prepared;
};

/// Pixels to rows: a convolution whose stride is its size.
struct PatchEmbedding {
  Tensor normalize;        ///< [3, 256] f32: value of every byte per channel
  ops::PackedLinear proj;  ///< 3 * frames * patch_size^2 -> features
};

/// Patches in the bytes of images, as in ops::PatchifyArgs.
struct PatchBytes {
  ConstTensorView pixels;
  ConstTensorView sources;  ///< [patches, 4] i32
  std::int64_t patch_size = 0;
  std::int64_t frames = 1;
  LiveRows rows;
};

/// A 3 x 3 convolution of square grids, padded by 1; the weight is that of WeightLoader::conv3x3.
struct Conv3x3 {
  ops::PackedLinear weight;
  std::int64_t stride = 1;
};

/// The rows that a block works on.
struct AttendedRows {
  ops::Sequences sequences;
  ConstTensorView cos = {};  ///< [rows, head_dim / 2] f32, or neither this nor sin
  ConstTensorView sin = {};  ///< rotates q and k as ops::projected_attention says

  [[nodiscard]] LiveRows live() const { return sequences.rows; }
};

/// x = proj(normalise(pixels)), [patches, features].
void embed_patches(ExecContext& ctx, const PatchEmbedding& embedding, const PatchBytes& patches,
                   TensorView x);

/// out = residual + (x - mean) / sqrt(variance + epsilon) * weight + bias; [rows, features]. May be
/// in place; the residual may be absent, or out.
void norm(ExecContext& ctx, const LayerNorm& layer, ConstTensorView x, LiveRows rows,
          TensorView out, ConstTensorView residual = {});

/// out = residual + x / sqrt(mean(x^2) + epsilon) * weight; [rows, features]. May be in place; the
/// residual may be absent, or out.
void norm(ExecContext& ctx, const RmsNorm& layer, ConstTensorView x, LiveRows rows, TensorView out,
          ConstTensorView residual = {});

/// out = residual + proj(attention(qkv(x))), heads of q and k normalised where there are norms and
/// rotated where there are angles; x and out
/// [rows, features]. The residual may be absent, or out.
void attend(ExecContext& ctx, const Attention& layer, const AttendedRows& rows, ConstTensorView x,
            ConstTensorView residual, TensorView out);

/// mixed = attention(qkv), for families that do more between the two layers than attend does.
/// @param qkv [rows, 3 * width], the result of layer.qkv. @param mixed [rows, width].
void mix(ExecContext& ctx, const Attention& layer, const ops::Sequences& sequences, TensorView qkv,
         TensorView mixed);

/// x += proj(attention(qkv(normed))), as attend; normed may be quantized, as for the next two.
void add_attention(ExecContext& ctx, const Attention& layer, const AttendedRows& rows,
                   ConstTensorView normed, TensorView x);

/// x += fc2(activation(fc1(normed))); normed and x [rows, features].
void add_mlp(ExecContext& ctx, const Mlp& layer, LiveRows rows, ConstTensorView normed,
             TensorView x);

/// x += down(activation(gate(normed)) * up(normed)); normed and x [rows, features].
void add_mlp(ExecContext& ctx, const GatedMlp& layer, LiveRows rows, ConstTensorView normed,
             TensorView x);

/// The layer that a part of a block multiplies first.
[[nodiscard]] inline const ops::PackedLinear& first_layer(const Attention& layer) {
  return layer.qkv;
}
[[nodiscard]] inline const ops::PackedLinear& first_layer(const Mlp& layer) { return layer.fc1; }
[[nodiscard]] inline const ops::PackedLinear& first_layer(const GatedMlp& layer) {
  return layer.gate_up;
}

/// out[:, column ...] = fc2(activation(fc1(x))), for mergers and projectors.
/// @param wide scratch [rows, wide], of the caller because the work may go to a second queue.
void mlp(ExecContext& ctx, const Mlp& layer, LiveRows rows, ConstTensorView x, TensorView wide,
         TensorView out, std::int64_t column = 0);

/// out = residual + down(activation(gate(x)) * up(x)); the residual may be absent, or out.
void mlp(ExecContext& ctx, const GatedMlp& layer, LiveRows rows, ConstTensorView x, TensorView out,
         ConstTensorView residual = {});

/// out = `count` of q, k and v from number `first` on, of every row of qkv.
/// @param qkv [rows, 3 * width]. @param out [rows, count * width].
void take_parts(ExecContext& ctx, TensorView qkv, std::int64_t first, std::int64_t count,
                LiveRows rows, TensorView out);

/// out = conv3x3(x); x [n * side^2, channels], out [n * (side / stride)^2, channels].
/// @param rows of out.
void conv3x3(ExecContext& ctx, const Conv3x3& layer, ConstTensorView x, std::int64_t side,
             LiveRows rows, TensorView out);

/// x += attention(norm(x)); x is [rows, features].
/// @tparam Rows AttendedRows, or a type with live() and an overload of add_attention.
template <class Norm, class AttentionLayer, class Rows>
void add_normed_attention(ExecContext& ctx, const Norm& before, const AttentionLayer& layer,
                          const Rows& rows, TensorView x) {
  const Arena::Scope scope(ctx.arena);
  const TensorView normed = ops::input_rows(ctx, first_layer(layer), x);
  norm(ctx, before, x, rows.live(), normed);
  add_attention(ctx, layer, rows, normed, x);
}

/// x += attention(norm1(x)); x += mlp(norm2(x)); x is [rows, features].
/// @tparam PreNormBlock has members norm1, norm2, attn and mlp, of types above or with overloads of
/// their functions.
template <class PreNormBlock, class Rows>
void add_block(ExecContext& ctx, const PreNormBlock& block, const Rows& rows, TensorView x) {
  add_normed_attention(ctx, block.norm1, block.attn, rows, x);
  const Arena::Scope scope(ctx.arena);
  const TensorView normed = ops::input_rows(ctx, first_layer(block.mlp), x);
  norm(ctx, block.norm2, x, rows.live(), normed);
  add_mlp(ctx, block.mlp, rows.live(), normed, x);
}

/// Called behind a block with the number of the tap, and x or a copy of it. Memory that it takes
/// from ctx.arena may be released when it returns.
using OnTap = std::function<void(std::size_t tap, TensorView x)>;

/// x passes through all blocks as add_block computes them, or, for few rows, in one piece of work
/// where the backend has prepared one (ops::add_blocks). Calls on_tap once for each of `taps`,
/// block numbers that ascend: on the way, or in the end with copies of x, which are valid for work
/// on ctx.stream that the call submits.
void add_blocks(ExecContext& ctx, const BlockSequence& sequence, const AttendedRows& rows,
                TensorView x, std::span<const std::int64_t> taps = {}, const OnTap& on_tap = {});

}  // namespace fovea::common
