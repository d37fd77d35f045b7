#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/cuda_abi.h"

namespace fovea {

/// Where to look for the GPU backend. The defaults are the product's; tests change them.
struct CudaSearch {
  std::string plugin_path;              ///< a file to load instead of searching; empty: search
  std::string driver = "libcuda.so.1";  ///< asked for first: without it nothing else is loaded
};

/// What looking for GPUs found. Plain data; a copy is as good as the original, because a plugin
/// that was loaded stays loaded until the process ends.
struct CudaBackend {
  const CudaPlugin* plugin = nullptr;  ///< null if none could be loaded
  std::string plugin_path;             ///< of the loaded plugin
  std::vector<std::string> devices;    ///< one description per usable GPU
  std::string reason;                  ///< why `devices` is empty; empty otherwise
};

/// Looks for a driver, then for the plugin, then for GPUs. Never throws for what is missing: the
/// answer says so. Without a plugin_path it searches, beside the program and beside this library,
///   ../lib/fovea   an installed tree,   ../../lib/fovea and so on   a build tree.
/// Takes microseconds without a driver, up to a second the first time the CUDA libraries are read.
[[nodiscard]] CudaBackend find_cuda(const CudaSearch& search = {});

/// Creates the device of one GPU.
/// @throws Error(kUnsupported) with the backend's reason if it has no such GPU.
[[nodiscard]] std::unique_ptr<Device> make_cuda_device(const CudaBackend& backend,
                                                       const CudaDeviceOptions& options);

}  // namespace fovea
