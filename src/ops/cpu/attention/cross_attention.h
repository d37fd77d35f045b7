#pragma once

#include "ops/cpu/rowwise/row_kernels.h"
#include "ops/kernels.h"

namespace fovea::cpu {

/// The body of Kernels::cross_attention; submits to a CpuStream. Running allocates nothing.
void cross_attention(Stream& stream, const ops::CrossAttentionArgs& args, AttendQuery attend);

}  // namespace fovea::cpu
