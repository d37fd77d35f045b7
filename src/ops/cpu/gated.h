#pragma once

#include "fovea/tower/device/device.h"
#include "fovea/tower/ops/gated.h"
#include "ops/cpu/cpu_kernels.h"

namespace fovea::cpu {

/// Submits to a CpuStream: the body of Kernels::gated.
void gated(Stream& stream, const ops::GatedArgs& args, CpuIsa isa);

}  // namespace fovea::cpu
