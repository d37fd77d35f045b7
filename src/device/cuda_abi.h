#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fovea/device_memory.h"
#include "fovea/tower/device/device.h"

namespace fovea {

/// Which attention kernel a GPU device uses.
enum class CudaAttention : int {
  kAuto,      ///< whichever is faster for the sizes of a call
  kPortable,  ///< instructions of every GPU since Ampere
  kHopper,    ///< WGMMA, for the head dims that it is compiled for
  kCudnn,     ///< cuDNN, where its attention can do it
};

/// How a thread waits for a GPU.
enum class CudaWait : int { kAuto, kSpin, kSleep };

/// Choices of one GPU device.
struct CudaDeviceOptions {
  int index = 0;  ///< number of the GPU as the driver counts
  CudaAttention attention = CudaAttention::kAuto;
  CudaWait wait = CudaWait::kAuto;
  int sm_budget = 0;  ///< most SMs that work may occupy; 0: all
  /// Folder where the measured choices of GEMM algorithms are kept between processes, in
  /// a file for this GPU model and its software; made if absent. Empty: nothing is kept.
  std::string cache_dir;
};

/// One GPU of this machine.
struct CudaGpu {
  std::string description;      ///< model for people, for example "NVIDIA H200, compute 9.0"
  std::string unusable;         ///< why the plugin cannot use it; empty if it can
  std::string pci_bus_id = {};  ///< as the driver's tools name it; empty if it does not answer
  std::string uuid = {};        ///< "GPU-" and 36 characters; likewise
};

/// Memory of another process, mapped on a GPU of this one until the buffer goes.
struct MappedBuffer {
  Buffer memory;
  int device = 0;
};

/// What the plugin `libfovea_cuda.so` offers. The functions may throw fovea::Error: the exception
/// crosses into the library because both are compiled by the same C++ ABI.
struct CudaPlugin {
  /// All GPUs, at the index that the driver gives them; if there are none, `reason` says why. A GPU
  /// that does not answer counts as unusable.
  std::vector<CudaGpu> (*list_gpus)(std::string& reason);
  /// @param options of a GPU that list_gpus says can be used.
  /// Where a green context of that GPU is current to the calling thread, the device has the SMs of
  /// that context.
  /// @throws Error(kUnsupported) for attention that is not available and for an SM budget without a
  /// driver that has green contexts, Error(kInvalidArgument) for an SM budget that the GPU does not
  /// have or cannot set apart, Error(kDevice), and Error(kOutOfMemory).
  std::unique_ptr<Device> (*create_device)(const CudaDeviceOptions& options);
  /// @param memory of Device::allocate() of any GPU.
  /// @throws Error(kUnsupported) if the driver names no memory, Error(kDevice).
  DeviceMemoryName (*name_memory)(const Buffer& memory);
  /// @param gpu the one that the memory is of.
  /// @throws Error(kInvalidArgument) for a handle of another size than the driver's,
  /// Error(kDevice).
  MappedBuffer (*map_memory)(int gpu, const DeviceMemoryName& name);
};

/// Name and type of the plugin's only symbol.
inline constexpr const char* kCudaPluginEntry = "fovea_cuda_plugin";
using CudaPluginEntry = const CudaPlugin* (*)();

}  // namespace fovea
