#pragma once

#include <memory>
#include <string>

#include "device/cuda_abi.h"
#include "fovea/tower/device/device.h"

namespace fovea::cuda {

/// Creates the backend of one GPU: bf16 activations, memory by cudaMalloc, pinned host memory.
/// @param options of a GPU of this machine; what concerns kernels is in `kernels`.
/// @param software identifies the software that measurements on the device are valid for:
/// software_versions() and other libraries that the kernels use.
/// @param kernels what the device computes with.
/// @param start_early whether the code of these kernels waits for their predecessors itself.
[[nodiscard]] std::unique_ptr<Device> make_device(const CudaDeviceOptions& options,
                                                  std::string software,
                                                  std::shared_ptr<const Kernels> kernels,
                                                  bool start_early);

/// Versions of driver, runtime and cuBLASLt, and size and modification time of this plugin, which
/// distinguish its builds. Measurements are valid for these.
[[nodiscard]] std::string software_versions();

}  // namespace fovea::cuda
