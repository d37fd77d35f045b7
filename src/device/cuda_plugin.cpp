// Finds and loads the GPU backend, a shared object that links the CUDA libraries so that this
// library does not have to. Everything that can be missing is a reason in the answer.
#include "device/cuda_plugin.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "fovea/version.h"

namespace fovea {

namespace {

constexpr const char* kPluginFile = "lib/fovea/libfovea_cuda.so";
constexpr int kMaxLevelsUp = 3;  // an executable of a build tree lies up to three folders deep

/// Folders of the running program and of the file that holds this function.
std::vector<std::filesystem::path> origins() {
  std::vector<std::filesystem::path> folders;
  std::error_code ignored;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  if (!program.empty()) folders.push_back(program.parent_path());
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&find_cuda), &info) != 0 && info.dli_fname != nullptr) {
    const auto library = std::filesystem::canonical(info.dli_fname, ignored);
    if (!library.empty()) folders.push_back(library.parent_path());
  }
  return folders;
}

/// The installed plugin of the nearest folder that has one, or an empty path.
std::filesystem::path search_plugin() {
  std::error_code ignored;
  for (std::filesystem::path folder : origins()) {
    for (int level = 0; level < kMaxLevelsUp; ++level) {
      folder = folder.parent_path();
      const auto candidate = folder / kPluginFile;
      if (std::filesystem::exists(candidate, ignored)) return candidate;
    }
  }
  return {};
}

std::string loader_message() {
  const char* const message = dlerror();
  return message != nullptr ? message : "no reason given";
}

/// Loads `path` and asks it for its table; fills plugin or reason.
void load_plugin(const std::string& path, CudaBackend& backend) {
  // RTLD_NODELETE: the CUDA libraries register exit handlers and threads, they cannot be unloaded.
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) {
    backend.reason = cat("the GPU plugin cannot be loaded: ", loader_message());
    return;
  }
  const auto entry = reinterpret_cast<CudaPluginEntry>(dlsym(handle, kCudaPluginEntry));
  if (entry == nullptr) {
    backend.reason = cat(path, ": not a Fovea GPU plugin: ", loader_message());
    return;
  }
  const CudaPlugin* const plugin = entry(kCudaPluginInterface);
  if (plugin == nullptr || std::strcmp(plugin->version, version()) != 0) {
    backend.reason = cat(path, ": built for another Fovea; expected version ", version(),
                         ", interface ", kCudaPluginInterface, ", got version ",
                         plugin == nullptr ? "unknown" : plugin->version);
    return;
  }
  backend.plugin = plugin;
  backend.plugin_path = path;
}

}  // namespace

CudaBackend find_cuda(const CudaSearch& search) {
  CudaBackend backend;
  if (dlopen(search.driver.c_str(), RTLD_LAZY | RTLD_LOCAL) == nullptr) {
    backend.reason = cat("no NVIDIA driver: ", loader_message());
    return backend;
  }
  const std::string path =
      search.plugin_path.empty() ? search_plugin().string() : search.plugin_path;
  if (path.empty()) {
    backend.reason = cat("no GPU plugin: ", kPluginFile, " is not in a folder above the program");
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
