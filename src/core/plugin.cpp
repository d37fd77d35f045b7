// Finding and loading the parts of Fovea that link large libraries and are loaded on demand.
#include "core/plugin.h"

#include <dlfcn.h>

#include <filesystem>
#include <system_error>
#include <vector>

namespace fovea {

namespace {

constexpr int kMaxLevelsUp = 3;  // an executable of a build tree lies up to three folders deep

/// Folders of the running program and of the file that holds this function.
std::vector<std::filesystem::path> origins() {
  std::vector<std::filesystem::path> folders;
  std::error_code ignored;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", ignored);
  if (!program.empty()) folders.push_back(program.parent_path());
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&find_plugin), &info) != 0 &&
      info.dli_fname != nullptr) {
    const auto library = std::filesystem::canonical(info.dli_fname, ignored);
    if (!library.empty()) folders.push_back(library.parent_path());
  }
  return folders;
}

std::string loader_message() {
  const char* const message = dlerror();
  return message != nullptr ? message : "no reason given";
}

}  // namespace

std::string find_plugin(const std::string& file) {
  std::error_code ignored;
  for (std::filesystem::path folder : origins()) {
    for (int level = 0; level < kMaxLevelsUp; ++level) {
      folder = folder.parent_path();
      const auto candidate = folder / "lib" / "fovea" / file;
      if (std::filesystem::exists(candidate, ignored)) return candidate.string();
    }
  }
  return {};
}

PluginEntry load_plugin_entry(const std::string& path, const std::string& symbol) {
  // RTLD_NODELETE: libraries behind a plugin register exit handlers, they cannot be unloaded.
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) return {nullptr, "cannot be loaded: " + loader_message()};
  void* const function = dlsym(handle, symbol.c_str());
  if (function == nullptr) return {nullptr, path + " is not a Fovea plugin: " + loader_message()};
  return {function, {}};
}

}  // namespace fovea
