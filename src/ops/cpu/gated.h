#pragma once

#include "device/device.h"
#include "ops/cpu/cpu_kernels.h"
#include "ops/gated.h"

namespace fovea::cpu {

/// Submits to a CpuStream: the body of Kernels::gated.
void gated(Stream& stream, const ops::GatedArgs& args, CpuIsa isa);

}  // namespace fovea::cpu
