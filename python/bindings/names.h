#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>

#include "fovea/media.h"
#include "fovea/option_table.h"
#include "fovea/options.h"
#include "fovea/stats.h"

namespace fovea::python {

/// A value and how Python spells it.
template <class T>
struct Named {
  const char* name;
  T value;
};

inline constexpr std::array kRowDTypes{Named<RowDType>{"auto", RowDType::kFloat32},
                                       Named<RowDType>{"float32", RowDType::kFloat32},
                                       Named<RowDType>{"bfloat16", RowDType::kBFloat16},
                                       Named<RowDType>{"float16", RowDType::kFloat16}};
inline constexpr std::array kModalities{Named<Modality>{"image", Modality::kImage},
                                        Named<Modality>{"video", Modality::kVideo}};
/// What has no name here is None in Python.
inline constexpr std::array kCacheUses{
    Named<CacheUse>{"hit", CacheUse::kHit}, Named<CacheUse>{"join", CacheUse::kJoin},
    Named<CacheUse>{"miss", CacheUse::kMiss}, Named<CacheUse>{"bypass", CacheUse::kBypass}};
inline constexpr std::array kGraphUses{Named<GraphUse>{"hit", GraphUse::kHit},
                                       Named<GraphUse>{"partial", GraphUse::kPartial},
                                       Named<GraphUse>{"miss", GraphUse::kMiss}};

/// Element types are taken by kDTypeAliases, too.
/// @throws nanobind::value_error for another name, with those that there are.
template <class T, std::size_t N>
[[nodiscard]] T value_named(const std::array<Named<T>, N>& table, const std::string& name,
                            const std::string& what) {
  std::string names;
  std::string_view wanted = name;
  if constexpr (std::is_same_v<T, RowDType>) wanted = full_name(wanted, kDTypeAliases);
  for (const Named<T>& entry : table) {
    if (wanted == entry.name) return entry.value;
    names += names.empty() ? entry.name : std::string(", ") + entry.name;
  }
  throw nanobind::value_error(
      (what + ": expected one of " + names + ", got \"" + name + "\"").c_str());
}

/// The last name that a value has; null: none.
template <class T, std::size_t N>
[[nodiscard]] const char* name_of(const std::array<Named<T>, N>& table, T value) {
  const char* name = nullptr;
  for (const Named<T>& entry : table) {
    if (entry.value == value) name = entry.name;
  }
  return name;
}

}  // namespace fovea::python
