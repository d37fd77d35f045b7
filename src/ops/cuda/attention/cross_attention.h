#pragma once

#include "device/cuda/cuda_stream.h"
#include "fovea/tower/ops/cross_attention.h"

namespace fovea::cuda {

/// The body of Kernels::cross_attention; returns at once.
/// @throws Error(kUnsupported) for other activations than bf16 and heads of more than 128 dims.
void cross_attention(CudaStream& stream, const ops::CrossAttentionArgs& args, int num_sms);

}  // namespace fovea::cuda
