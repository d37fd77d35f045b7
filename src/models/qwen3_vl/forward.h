#pragma once

#include "models/qwen3_vl/config.h"
#include "models/qwen3_vl/weights.h"
#include "ops/context.h"

namespace fovea::qwen3_vl {

/// Constants of a tower that ops read from device memory.
struct Constants {
  Tensor normalize;  ///< [3, 256] f32: value of every byte per channel
  Tensor inv_freq;   ///< [head_dim / 4] f32: rope_theta^(-2 j / (head_dim / 2))
};

/// Inputs of a forward, on the device, at capacity; the adapter declares and fills them.
struct Inputs {
  ConstTensorView pixels;      ///< [bytes] u8
  ConstTensorView sources;     ///< [patches, 4] i32, see ops::PatchifyArgs
  ConstTensorView positions;   ///< [patches, 4] i32, see ops::AddPositionsArgs
  ConstTensorView cu_seqlens;  ///< [sequences + 1] i32, one sequence per frame
  LiveRows patches;
  LiveRows tokens;
  LiveRows seqs;
};

/// The tower: bytes in, rows out.
/// @param out [tokens, out_width]: main embedding, then the deepstack levels, side by side.
/// Source: Qwen and GLM specification, section 6.4.
void forward(ExecContext& ctx, const Config& config, const Weights& weights,
             const Constants& constants, const Inputs& in, TensorView out);

}  // namespace fovea::qwen3_vl
