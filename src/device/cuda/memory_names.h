#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "device/cuda_abi.h"

namespace fovea::cuda {

/// A UUID as the driver's tools write it: "GPU-" and 32 hexadecimal digits in five groups.
[[nodiscard]] std::string uuid_text(const cudaUUID_t& uuid);

/// As CudaPlugin has them.
[[nodiscard]] DeviceMemoryName name_memory(const Buffer& memory);
[[nodiscard]] MappedBuffer map_memory(int gpu, const DeviceMemoryName& name);

}  // namespace fovea::cuda
