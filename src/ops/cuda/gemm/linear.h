#pragma once

#include "device/device.h"
#include "ops/linear.h"

namespace fovea::cuda {

/// The body of Kernels::pack_linear. Returns when the copies are complete.
[[nodiscard]] ops::PackedLinear pack_linear(Device& device, int device_index,
                                            ConstTensorView weight, ConstTensorView bias);

}  // namespace fovea::cuda
