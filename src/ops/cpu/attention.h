#pragma once

#include <cstddef>
#include <cstdint>

#include "fovea/tower/device/device.h"
#include "fovea/tower/ops/attention.h"
#include "ops/cpu/isa/isa_kernels.h"

namespace fovea::cpu {

/// What attention multiplies: numbers of f32, or integers of 16 bits (attention16/body.h).
enum class AttentionProducts : std::uint8_t { kF32, kInt16 };

/// Scratch for `num_threads` threads that work on one attention op.
[[nodiscard]] std::size_t attention_workspace(const ops::AttentionArgs& args,
                                              AttentionProducts products, int num_threads);

/// The rotary embedding of q and k, as in ops::ProjectedAttentionArgs.
struct Rotation {
  ConstTensorView cos = {};
  ConstTensorView sin = {};
};

/// Submits attention to a CpuStream: the body of Kernels::attention. As many threads take part as
/// `workspace` [bytes] u8 has room for. Running allocates nothing.
/// @param rotation applied to q and k, with products of kInt16 only; or none.
void attention(Stream& stream, const ops::AttentionArgs& args, AttentionProducts products,
               TensorView workspace, const IsaKernels& kernels, const Rotation& rotation = {});

}  // namespace fovea::cpu
