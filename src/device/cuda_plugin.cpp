// Finds and loads the GPU backend, a shared object that links the CUDA libraries so that this
// library does not have to. Everything that can be missing is a reason in the answer.
#include "device/cuda_plugin.h"

#include <dlfcn.h>

#include <cstring>
#include <utility>

#include "core/check.h"
#include "core/plugin.h"
#include "fovea/version.h"

namespace fovea {

namespace {

constexpr const char* kPluginFile = "libfovea_cuda.so";

/// Loads `path` and asks it for its table; fills plugin or reason.
void load_plugin(const std::string& path, CudaBackend& backend) {
  const PluginEntry entry = load_plugin_entry(path, kCudaPluginEntry);
  if (entry.function == nullptr) {
    backend.reason = cat("the GPU plugin ", entry.reason);
    return;
  }
  const CudaPlugin* const plugin =
      reinterpret_cast<CudaPluginEntry>(entry.function)(kCudaPluginInterface);
  if (plugin == nullptr || std::strcmp(plugin->version, version()) != 0) {
    backend.reason = cat(path, " was built for another Fovea: expected version ", version(),
                         " with the same interface, got ",
                         plugin == nullptr ? "another interface" : plugin->version);
    return;
  }
  backend.plugin = plugin;
  backend.plugin_path = path;
}

}  // namespace

CudaBackend find_cuda(const CudaSearch& search) {
  CudaBackend backend;
  if (dlopen(search.driver.c_str(), RTLD_LAZY | RTLD_LOCAL) == nullptr) {
    const char* const message = dlerror();
    backend.reason = cat("no NVIDIA driver: ", message != nullptr ? message : search.driver);
    return backend;
  }
  const std::string path =
      search.plugin_path.empty() ? find_plugin(kPluginFile) : search.plugin_path;
  if (path.empty()) {
    backend.reason =
        cat("no GPU plugin: lib/fovea/", kPluginFile, " is in no folder above the program");
    return backend;
  }
  load_plugin(path, backend);
  if (backend.plugin == nullptr) return backend;
  const int count = backend.plugin->count_devices(backend.reason);
  for (int index = 0; index < count; ++index) {
    backend.devices.push_back(backend.plugin->describe_device(index));
  }
  return backend;
}

std::unique_ptr<Device> make_cuda_device(const CudaBackend& backend,
                                         const CudaDeviceOptions& options) {
  FOVEA_CHECK(!backend.devices.empty(), kUnsupported, "cuda:", options.index, ": ", backend.reason);
  FOVEA_CHECK(options.index >= 0 && std::cmp_less(options.index, backend.devices.size()),
              kUnsupported, "cuda:", options.index, ": this machine has ", backend.devices.size(),
              " GPUs, numbered from 0");
  return backend.plugin->create_device(options);
}

}  // namespace fovea
