#pragma once

#include "device/device.h"
#include "ops/cpu/cpu_kernels.h"
#include "ops/rope.h"

namespace fovea::cpu {

/// Submit to a CpuStream: the bodies of the functions of Kernels with the same names.
void rope_angles(Stream& stream, const ops::RopeAnglesArgs& args);
void rope(Stream& stream, const ops::RopeArgs& args, CpuIsa isa);

}  // namespace fovea::cpu
