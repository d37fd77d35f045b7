#pragma once

#include "fovea/tower/device/device.h"
#include "fovea/tower/ops/activate.h"
#include "ops/cpu/vector/vector_kernels.h"

namespace fovea::cpu {

/// Submits to a CpuStream: the body of Kernels::activate.
void activate(Stream& stream, const ops::ActivateArgs& args, ActivateRow activate_row);

}  // namespace fovea::cpu
