// Finds and loads the GPU backend, a shared object that links the CUDA libraries so that this
// library does not have to. If something is missing, the result holds the reason.
#include "device/cuda_plugin.h"

#include <dlfcn.h>

#include <utility>

#include "core/check.h"
#include "core/plugin/plugin.h"
#include "device/cuda_interface.h"

namespace fovea {

namespace {

constexpr const char* kPluginFile = "libfovea_cuda.so";

/// Loads `path` and asks it for its table; fills plugin or reason.
void load_plugin(const std::string& path, CudaBackend& backend) {
  const PluginEntry entry = load_plugin_entry(path, kCudaPluginEntry, kCudaPluginBuild);
  if (entry.function == nullptr) {
    backend.reason = cat("the GPU plugin: ", entry.reason);
    return;
  }
  backend.plugin = reinterpret_cast<CudaPluginEntry>(entry.function)();
  backend.plugin_path = path;
}

/// The devices to ask for instead of a GPU that cannot be used.
std::string usable_names(const CudaBackend& backend) {
  std::string names;
  for (const int index : usable_gpus(backend)) {
    names += cat(names.empty() ? "GPUs that can: " : ", ", "cuda:", index);
  }
  return names.empty() ? "no GPU of this machine can" : names;
}

}  // namespace

CudaBackend find_cuda(const CudaSearch& search) {
  CudaBackend backend;
  const PluginFile file =
      search.plugin_path.empty() ? find_plugin(kPluginFile) : PluginFile{search.plugin_path, {}};
  if (dlopen(search.driver.c_str(), RTLD_LAZY | RTLD_LOCAL) == nullptr) {
    const char* const message = dlerror();
    backend.reason = cat("no NVIDIA driver: ", message != nullptr ? message : search.driver,
                         file.path.empty() ? "" : "; the GPU plugin is " + file.path);
    return backend;
  }
  if (file.path.empty()) {
    backend.reason = cat("no GPU plugin: ", file.reason);
    return backend;
  }
  load_plugin(file.path, backend);
  if (backend.plugin == nullptr) return backend;
  backend.gpus = backend.plugin->list_gpus(backend.reason);
  return backend;
}

std::vector<int> usable_gpus(const CudaBackend& backend) {
  std::vector<int> indices;
  for (std::size_t i = 0; i < backend.gpus.size(); ++i) {
    if (backend.gpus[i].unusable.empty()) indices.push_back(static_cast<int>(i));
  }
  return indices;
}

std::string describe_gpus(const CudaBackend& backend) {
  if (backend.gpus.empty()) return backend.reason;
  std::string text;
  for (std::size_t i = 0; i < backend.gpus.size(); ++i) {
    const CudaGpu& gpu = backend.gpus[i];
    text += cat(i == 0 ? "" : "; ", "cuda:", i, " ", gpu.description);
    if (!gpu.unusable.empty()) text += cat(", cannot be used: ", gpu.unusable);
  }
  return text;
}

std::unique_ptr<Device> make_cuda_device(const CudaBackend& backend,
                                         const CudaDeviceOptions& options) {
  const int index = options.index;
  FOVEA_CHECK(!backend.gpus.empty(), kUnsupported, "cuda:", index, ": ", backend.reason);
  FOVEA_CHECK(index >= 0 && std::cmp_less(index, backend.gpus.size()), kUnsupported, "cuda:", index,
              ": this machine has ", backend.gpus.size(), " GPUs, numbered from 0");
  const CudaGpu& gpu = backend.gpus[static_cast<std::size_t>(index)];
  FOVEA_CHECK(gpu.unusable.empty(), kUnsupported, "cuda:", index, " (", gpu.description,
              ") cannot be used: ", gpu.unusable, "; ", usable_names(backend));
  return backend.plugin->create_device(options);
}

}  // namespace fovea
