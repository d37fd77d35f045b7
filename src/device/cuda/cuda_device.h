#pragma once

#include <memory>
#include <string>

#include "device/cuda/sm_partition.h"
#include "device/cuda_abi.h"
#include "fovea/tower/device/device.h"

namespace fovea::cuda {

/// What the backend of one GPU is made of.
struct CudaDeviceParts {
  std::shared_ptr<const SmPartition> sms;  ///< of a GPU of this machine
  CudaWait wait;
  /// Identifies the software that measurements on the device are valid for: software_versions() and
  /// other libraries that the kernels use.
  std::string software;
  std::shared_ptr<const Kernels> kernels;  ///< what the device computes with
  bool start_early;  ///< the code of these kernels waits for their predecessors itself
};

/// Creates the backend of one GPU: bf16 activations, memory by cudaMalloc, pinned host memory.
[[nodiscard]] std::unique_ptr<Device> make_device(CudaDeviceParts parts);

/// Versions of driver, runtime and cuBLASLt, and size and modification time of this plugin, which
/// distinguish its builds. Measurements are valid for these.
[[nodiscard]] std::string software_versions();

}  // namespace fovea::cuda
