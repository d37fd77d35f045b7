#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/cuda_abi.h"

namespace fovea {

/// Where to look for the GPU backend. Only tests change the defaults.
struct CudaSearch {
  std::string plugin_path;              ///< a file to load instead of searching; empty: search
  std::string driver = "libcuda.so.1";  ///< asked for first: without it nothing else is loaded
};

/// Result of a search for GPUs. Plain data that may be copied: a plugin stays loaded until the
/// process ends.
struct CudaBackend {
  const CudaPlugin* plugin = nullptr;  ///< null if none could be loaded
  std::string plugin_path;             ///< of the loaded plugin
  std::vector<CudaGpu> gpus;           ///< all of this machine, at their index, usable or not
  std::string reason;                  ///< why `gpus` is empty; empty otherwise
};

/// Looks for a driver, then for the plugin, then for GPUs. Does not throw if one is missing:
/// `reason` says so, and where the plugin is if only a driver is missing. Without a plugin_path it
/// searches, beside the program and beside this library,
///   ../lib/fovea   an installed tree,   ../../lib/fovea and so on   a build tree.
/// Takes microseconds without a driver, up to a second the first time the CUDA libraries are read.
[[nodiscard]] CudaBackend find_cuda(const CudaSearch& search = {});

/// Indices of the GPUs that can be used, ascending.
[[nodiscard]] std::vector<int> usable_gpus(const CudaBackend& backend);

/// Every GPU on one line, with the reason if it cannot be used; or the reason why there is none.
[[nodiscard]] std::string describe_gpus(const CudaBackend& backend);

/// Creates the device of one GPU.
/// @throws Error(kUnsupported) if there is no such GPU or it cannot be used, with the reason and
/// the GPUs that can; and as CudaPlugin::create_device.
[[nodiscard]] std::unique_ptr<Device> make_cuda_device(const CudaBackend& backend,
                                                       const CudaDeviceOptions& options);

}  // namespace fovea
