#pragma once

#include <memory>

#include "device/device.h"

namespace fovea::cuda {

/// Creates the backend of one GPU: bf16 activations, memory by cudaMalloc, page-locked host memory.
/// @param index must be a GPU of this machine.
/// @param kernels what the device computes with.
[[nodiscard]] std::unique_ptr<Device> make_device(int index,
                                                  std::shared_ptr<const Kernels> kernels);

}  // namespace fovea::cuda
