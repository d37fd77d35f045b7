#include "options.h"

#include <nanobind/stl/array.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "fovea/option_table.h"
#include "fovea/option_text.h"

namespace nb = nanobind;

namespace fovea::python {
namespace {

template <class Value>
void set(Value& value, nb::handle object, std::string_view name) {
  const auto given = nb::cast<decltype(plain_value(value))>(object);
  if constexpr (std::is_enum_v<Value>) {
    const std::optional<Value> known = fovea::value_named<Value>(given);
    if (!known) {
      throw nb::value_error((std::string(name) + ": expected one of " + value_names<Value>() +
                             ", got \"" + std::string(given) + "\"")
                                .c_str());
    }
    value = *known;
  } else if constexpr (std::is_same_v<Value, std::chrono::milliseconds>) {
    if (given < 0) {
      throw nb::value_error(
          (std::string(name) + ": expected at least 0, got " + std::to_string(given)).c_str());
    }
    value = std::chrono::milliseconds(given);
  } else if constexpr (std::is_array_v<Value>) {
    std::ranges::copy(given, value);
  } else {
    value = given;
  }
}

/// Sets the option of that name. @return whether there is one.
bool set_named(EngineOptions& options, std::string_view name, nb::handle object) {
  bool is_known = false;
  for_each_option(options, [&](const auto& option, auto& value) {
    if (option.name != name) return;
    is_known = true;
    set(value, object, name);
  });
  return is_known;
}

}  // namespace

EngineOptions engine_options(const nb::dict& given) {
  EngineOptions options;
  for (const auto [key, value] : given) {
    const auto name = nb::cast<std::string>(key);
    try {
      if (!set_named(options, name, value)) {
        throw nb::type_error(("there is no option \"" + name + "\"").c_str());
      }
    } catch (const nb::cast_error&) {
      throw nb::type_error(
          ("option " + name + " cannot be " + nb::cast<std::string>(nb::repr(value))).c_str());
    }
  }
  return options;
}

nb::dict option_dict(const EngineOptions& options) {
  nb::dict values;
  for_each_option(options, [&](const auto& option, const auto& value) {
    values[nb::str(option.name.data(), option.name.size())] = nb::cast(plain_value(value));
  });
  return values;
}

}  // namespace fovea::python
