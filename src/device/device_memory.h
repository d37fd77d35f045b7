#pragma once

#include "device/cuda_plugin.h"
#include "fovea/device_memory.h"
#include "fovea/tower/device/device.h"

namespace fovea {

/// Names memory of a GPU for other processes.
/// @param device a GPU. @param memory what its allocate() has returned; must stay until all have
/// unmapped it. CUDA shares whole pages of 2 MiB: what lies in the last one of the memory beside it
/// can be seen, too.
/// @throws Error(kUnsupported) for a device that computes in host memory, which has no such names,
/// and where the driver has none, as in some containers; Error(kDevice).
[[nodiscard]] DeviceMemoryName name_memory(const Device& device, const Buffer& memory);

/// Maps memory as MappedMemory does, with a backend that has been found. @throws as MappedMemory().
[[nodiscard]] MappedBuffer map_memory(const CudaBackend& backend, const DeviceMemoryName& name);

}  // namespace fovea
