#pragma once

#include "fovea/tower/device/device.h"
#include "fovea/tower/ops/linear.h"
#include "ops/cpu/linear/task.h"

namespace fovea::cpu {

/// Packs weight and bias for cpu::linear: the body of Kernels::pack_linear. The layout is the same
/// for every instruction set.
[[nodiscard]] ops::PackedLinear pack_linear(Device& device, ConstTensorView weight,
                                            ConstTensorView bias);

/// Submits one linear layer to a CpuStream: the body of Kernels::linear. The number of live rows is
/// read when the work runs; no number of rows costs more than its arithmetic. Running allocates
/// nothing.
void linear(Stream& stream, const ops::LinearArgs& args, const LinearLeaf& leaf);

}  // namespace fovea::cpu
