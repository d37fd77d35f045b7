#pragma once

#include <array>
#include <cstdint>

#include "fovea/version.h"

namespace fovea {

/// Which library a shared object is built for, which loads it.
struct PluginBuild {
  std::array<char, 8> kind{};  ///< for example "video"
  std::array<std::int32_t, 3> version{kVersionMajor, kVersionMinor, kVersionPatch};
  std::int32_t interface_number = 0;  ///< tells classes apart that both sides compile

  [[nodiscard]] bool operator==(const PluginBuild&) const = default;
};

/// An ELF note with a build. A plugin defines one constant of this type, so that the library can
/// read it from the file before any code of the plugin runs:
///   [[gnu::section(".note.fovea"), gnu::aligned(4), gnu::used]] constexpr PluginNote note{...};
struct PluginNote {
  std::uint32_t name_bytes = 8;
  std::uint32_t build_bytes = sizeof(PluginBuild);
  std::uint32_t type = 1;
  std::array<char, 8> name{'F', 'o', 'v', 'e', 'a'};
  PluginBuild build;
};

}  // namespace fovea
