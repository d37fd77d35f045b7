#pragma once

#include <cstddef>

#include "ops/cpu/attention/task.h"
#include "ops/cpu/rowwise/row_kernels.h"
#include "ops/kernels.h"

namespace fovea::cpu {

/// Scratch for `num_threads` threads that work on one attention op.
[[nodiscard]] std::size_t attention_workspace(const ops::AttentionArgs& args, int num_threads,
                                              const AttentionKernel& kernel);

/// The rotary embedding of q and k, as in ops::ProjectedAttentionArgs.
struct Rotation {
  ConstTensorView cos = {};
  ConstTensorView sin = {};
};

/// Submits attention to a CpuStream: the body of Kernels::attention. As many threads take part as
/// `workspace` [bytes] u8 has room for. Running allocates nothing.
/// @param rotation applied to q and k, by kernels of integers only; or none.
void attention(Stream& stream, const ops::AttentionArgs& args, TensorView workspace,
               const AttentionKernel& kernel, const Rotation& rotation = {});

/// The same two functions for Kernels::grid_attention.
/// @param kernel in f32, with a grid_bias.
[[nodiscard]] std::size_t grid_attention_workspace(const ops::GridAttentionArgs& args,
                                                   int num_threads, const AttentionKernel& kernel);
void grid_attention(Stream& stream, const ops::GridAttentionArgs& args, TensorView workspace,
                    const AttentionKernel& kernel);

/// The body of Kernels::cross_attention; submits to a CpuStream. Running allocates nothing.
void cross_attention(Stream& stream, const ops::CrossAttentionArgs& args, AttendQuery attend);

}  // namespace fovea::cpu
