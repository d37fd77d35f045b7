#pragma once

#include "fovea/tower/device/device.h"
#include "fovea/tower/ops/activate.h"
#include "ops/cpu/cpu_kernels.h"

namespace fovea::cpu {

/// Submits to a CpuStream: the body of Kernels::activate.
void activate(Stream& stream, const ops::ActivateArgs& args, CpuIsa isa);

}  // namespace fovea::cpu
