#pragma once

#include "fovea/tower/device/device.h"
#include "fovea/tower/ops/gated.h"
#include "ops/cpu/vector/vector_kernels.h"

namespace fovea::cpu {

/// Submits to a CpuStream: the body of Kernels::gated.
void gated(Stream& stream, const ops::GatedArgs& args, GateRow gate_row);

}  // namespace fovea::cpu
