#pragma once

#include <cstddef>

#include "fovea/tower/device/device.h"
#include "fovea/tower/ops/attention.h"
#include "ops/cpu/cpu_kernels.h"

namespace fovea::cpu {

/// Scratch for `num_threads` threads that work on one attention op.
[[nodiscard]] std::size_t attention_workspace(const ops::AttentionArgs& args, int num_threads);

/// Submits attention to a CpuStream: the body of Kernels::attention. As many threads take part as
/// `workspace` [bytes] u8 has room for. Running allocates nothing.
void attention(Stream& stream, const ops::AttentionArgs& args, TensorView workspace, CpuIsa isa);

}  // namespace fovea::cpu
