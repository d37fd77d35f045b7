#pragma once

#include <cstddef>

#include "ops/cpu/vector/vector_kernels.h"
#include "ops/kernels.h"

namespace fovea::cpu {

/// Scratch for `num_threads` threads that work on one grid attention op.
[[nodiscard]] std::size_t grid_attention_workspace(const ops::GridAttentionArgs& args,
                                                   int num_threads, const AttentionKernel& kernel);

/// Bodies of Kernels::grid_attention and Kernels::im2col_3x3: submit to a CpuStream; running
/// allocates nothing. As many threads take part as `workspace` [bytes] u8 has room for.
void grid_attention(Stream& stream, const ops::GridAttentionArgs& args, TensorView workspace,
                    const AttentionKernel& kernel, GridBias grid_bias);
void im2col_3x3(Stream& stream, const ops::Im2colArgs& args);

}  // namespace fovea::cpu
