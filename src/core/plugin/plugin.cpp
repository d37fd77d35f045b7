// Finding and loading the parts of Fovea that link large libraries and are loaded on demand.
#include "core/plugin/plugin.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

#include "core/check.h"

namespace fovea {

namespace {

namespace fs = std::filesystem;

/// The shared library that holds this function; empty if the program itself does. The loader knows
/// a program without a name, where dladdr repeats what the caller of the program claims.
fs::path own_library() {
  Dl_info info{};
  link_map* map = nullptr;
  if (dladdr1(reinterpret_cast<const void*>(&find_plugin), &info, reinterpret_cast<void**>(&map),
              RTLD_DL_LINKMAP) == 0 ||
      map == nullptr || map->l_name == nullptr)
    return {};
  const fs::path name = map->l_name;
  std::error_code absent;
  return name.is_absolute() ? fs::canonical(name, absent) : fs::path();
}

fs::path own_program() {
  std::error_code absent;
  return fs::read_symlink("/proc/self/exe", absent);
}

std::vector<fs::path> plugin_folders() {
  std::vector<fs::path> folders;
  if (const fs::path library = own_library(); !library.empty())
    folders.push_back(library.parent_path() / "fovea");
  if (const fs::path program = own_program(); !program.empty())
    folders.push_back((program.parent_path() / FOVEA_PROGRAM_TO_PLUGINS).lexically_normal());
  return folders;
}

bool belongs_to_us(uid_t owner) {
  if (owner == 0 || owner == geteuid()) return true;
  struct stat status {};
  const auto owns = [&](const fs::path& file) {
    return !file.empty() && stat(file.c_str(), &status) == 0 && status.st_uid == owner;
  };
  return owns(own_program()) || owns(own_library());
}

/// Why a file or folder is not trusted, empty if it is. The group of this process counts as its
/// user: where every user has a group, files are writable by it.
std::string distrust(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return path + ": cannot be examined";
  if (!belongs_to_us(status.st_uid))
    return cat(path, " is not trusted: it belongs to user ", status.st_uid,
               ", who does not own this program");
  const bool other_group = (status.st_mode & S_IWGRP) != 0 && status.st_gid != getegid();
  if (other_group || (status.st_mode & S_IWOTH) != 0)
    return path + " is not trusted: other users can write to it";
  return {};
}

std::string describe(const PluginBuild& build) {
  return cat("version ", build.version[0], ".", build.version[1], ".", build.version[2],
             " with interface ", build.interface_number);
}

std::string loader_message() {
  const char* const message = dlerror();
  return message != nullptr ? message : "no reason given";
}

}  // namespace

PluginFile find_plugin(const std::string& file) {
  std::vector<fs::path> folders = plugin_folders();
  if (const char* const chosen = secure_getenv("FOVEA_PLUGIN_DIR"); chosen != nullptr) {
    folders = {chosen};
    if (!folders.front().is_absolute())
      return {{}, cat("FOVEA_PLUGIN_DIR: expected an absolute path, got \"", chosen, "\"")};
  }
  std::string searched;
  for (const fs::path& folder : folders) {
    const std::string candidate = (folder / file).string();
    if (path_exists(candidate)) return {candidate, {}};
    searched += (searched.empty() ? "" : " and not in ") + folder.string();
  }
  return {{}, cat(file, " is not in ", searched)};
}

std::string plugin_refusal(const std::string& path, const PluginBuild& expected) try {
  const InputFile file(path);
  for (const std::string& checked : {fs::path(path).parent_path().string(), path}) {
    if (std::string reason = distrust(checked); !reason.empty()) return reason;
  }
  const std::optional<PluginBuild> build = read_plugin_build(file);
  if (!build || build->kind != expected.kind)
    return cat(path, " is not the plugin \"", expected.kind.data(), "\" of Fovea");
  if (*build == expected) return {};
  return cat(path, " was built for another Fovea: expected ", describe(expected), ", got ",
             describe(*build));
} catch (const Error& error) {
  return cat("cannot be loaded: ", error.what());
}

PluginEntry load_plugin_entry(const std::string& path, const std::string& symbol,
                              const PluginBuild& build) {
  if (std::string reason = plugin_refusal(path, build); !reason.empty())
    return {nullptr, std::move(reason)};
  // RTLD_NODELETE: libraries behind a plugin register exit handlers, they cannot be unloaded.
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) return {nullptr, "cannot be loaded: " + loader_message()};
  void* const function = dlsym(handle, symbol.c_str());
  if (function == nullptr) return {nullptr, "cannot be used: " + loader_message()};
  return {function, {}};
}

}  // namespace fovea
