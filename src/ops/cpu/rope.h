#pragma once

#include "device/device.h"
#include "ops/cpu/cpu_kernels.h"
#include "ops/projected_attention.h"
#include "ops/rope.h"

namespace fovea::cpu {

/// Submit to a CpuStream.

/// The body of Kernels::rope_angles.
void rope_angles(Stream& stream, const ops::RopeAnglesArgs& args);
/// The second step of Kernels::projected_attention: rotates q and k of args.qkv in place.
void rotate(Stream& stream, const ops::ProjectedAttentionArgs& args, CpuIsa isa);

}  // namespace fovea::cpu
