#pragma once

#include <memory>
#include <string>

#include "device/device.h"

namespace fovea::cuda {

/// Creates the backend of one GPU: bf16 activations, memory by cudaMalloc, page-locked host memory.
/// @param index must be a GPU of this machine.
/// @param software what measurements on it are valid for: software_versions() and what else the
/// kernels use.
/// @param kernels what the device computes with.
[[nodiscard]] std::unique_ptr<Device> make_device(int index, std::string software,
                                                  std::shared_ptr<const Kernels> kernels);

/// Versions of driver, runtime and cuBLASLt, and what tells builds of this plugin apart: its size
/// and the time it was written. Measurements are valid for these.
[[nodiscard]] std::string software_versions();

}  // namespace fovea::cuda
