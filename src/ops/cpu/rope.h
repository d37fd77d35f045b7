#pragma once

#include "fovea/tower/device/device.h"
#include "fovea/tower/ops/projected_attention.h"
#include "fovea/tower/ops/rope.h"
#include "ops/cpu/vector/vector_kernels.h"

namespace fovea::cpu {

/// Submit to a CpuStream.

/// The body of Kernels::rope_angles.
void rope_angles(Stream& stream, const ops::RopeAnglesArgs& args);
/// The second step of Kernels::projected_attention: rotates q and k of args.qkv in place.
void rotate(Stream& stream, const ops::ProjectedAttentionArgs& args, RotateHeads rotate_heads);

}  // namespace fovea::cpu
