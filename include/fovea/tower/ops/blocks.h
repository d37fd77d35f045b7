#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "fovea/export.h"
#include "fovea/tower/core/tensor_view.h"
#include "fovea/tower/ops/attention.h"
#include "fovea/tower/ops/linear.h"

namespace fovea::ops {

/// The layers of a pre-norm block, which turns rows x into
///   x + proj(attention(qkv(layer_norm1(x)))), and these into
///   x + fc2(activation(fc1(layer_norm2(x)))),
/// where attention scales q . k by head_dim^-0.5.
struct BlockLayers {
  ConstTensorView norm1_weight;  ///< [features] f32, on the device, as the next three
  ConstTensorView norm1_bias;
  ConstTensorView norm2_weight;
  ConstTensorView norm2_bias;
  float epsilon;             ///< of both norms
  const PackedLinear& qkv;   ///< features -> q | k | v, heads contiguous in each
  const PackedLinear& proj;  ///< heads * head_dim -> features
  const PackedLinear& fc1;   ///< features -> wide
  const PackedLinear& fc2;   ///< wide -> features
  Activation activation;
  std::int64_t num_heads;
};

/// What a backend has made of blocks that follow one another, to compute several of them in one
/// piece of work. Refers to the memory of their weights.
struct PreparedBlocks {
  std::shared_ptr<const void> state;  ///< private to the backend; null: there is none

  explicit operator bool() const noexcept { return state != nullptr; }
};

/// Prepares blocks at load; returns when that is complete.
/// @return nothing if the backend computes blocks of these sizes op by op: the CPU always, a GPU
/// all but those that src/ops/cuda/tower/sizes.h lists, and quantized ones.
/// @throws Error(kInvalidArgument) if layers do not follow one another; Error(kOutOfMemory) and
/// Error(kDevice) of a GPU.
[[nodiscard]] FOVEA_API PreparedBlocks prepare_blocks(Device& device,
                                                      std::span<const BlockLayers> blocks);

struct AddBlocksArgs {
  const PreparedBlocks& blocks;  ///< must outlive recorded work
  ConstTensorView cos = {};      ///< [rows, head_dim / 2] f32, or neither this nor sin
  ConstTensorView sin = {};      ///< angles as in ProjectedAttentionArgs
  Sequences sequences;
  TensorView x;                             ///< [rows, features], activation dtype, in and out
  std::span<const std::int64_t> taps = {};  ///< blocks behind which x is kept, ascending
};

/// x passes through all blocks, where the backend has one kernel for that many rows. Sums, norms
/// and the residual stream are f32; operands of GEMMs and of attention are rounded to the
/// activation dtype, and x at the end. A norm is applied behind the GEMM that reads it:
///   W (gamma (x - mean) rstd + beta) + b = rstd (W (gamma x) - mean W gamma) + W beta + b
/// so rows agree with those of the ops one by one within the rounding of the activation dtype, not
/// bit for bit. Which way is taken depends on shapes alone. Asynchronous on ctx.stream; safe to
/// capture.
/// @return x behind each of the taps, [rows, features], in memory of ctx.arena until the caller's
/// scope of it ends; nothing if nothing was done or taken, because the backend computes blocks of
/// that many rows op by op.
/// @throws Error(kInvalidArgument) if a shape or dtype does not match the list above, or if there
/// is no block for a tap.
[[nodiscard]] FOVEA_API std::optional<std::vector<TensorView>> add_blocks(
    ExecContext& ctx, const AddBlocksArgs& args);

}  // namespace fovea::ops
