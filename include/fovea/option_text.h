#pragma once

#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "fovea/option.h"

/// Values of options for what is not C++: JSON, Python, lines of text.
namespace fovea {

/// A value as a type that every format has: the name of an enumerator, milliseconds as a number, an
/// array as std::array; anything else as it is: bool, number, string, vector, map, or an optional.
template <class Value>
[[nodiscard]] constexpr auto plain_value(const Value& value) {
  if constexpr (std::is_enum_v<Value>) {
    return value_name(value);
  } else if constexpr (std::is_same_v<Value, std::chrono::milliseconds>) {
    return static_cast<std::int64_t>(value.count());
  } else if constexpr (std::is_array_v<Value>) {
    return std::to_array(value);
  } else {
    return value;
  }
}

/// A value on one line: "vllm", "true", "0.5", "255,255,255"; "default" for an optional that is
/// absent, "global=272,544;local=100" for lists by name. Equal texts of an option mean equal
/// values.
template <class Value>
[[nodiscard]] std::string option_text(const Value& value) {
  if constexpr (std::is_same_v<Value, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_floating_point_v<Value>) {
    std::array<char, 32> digits{};
    return {digits.data(), std::to_chars(digits.data(), digits.end(), value).ptr};
  } else if constexpr (std::is_integral_v<Value>) {
    return std::to_string(value);
  } else if constexpr (std::is_convertible_v<Value, std::string_view>) {
    return std::string(value);
  } else if constexpr (requires { value.has_value(); }) {
    return value ? option_text(*value) : "default";
  } else if constexpr (requires { typename Value::mapped_type; }) {
    std::string text;
    for (const auto& [name, list] : value)
      text += (text.empty() ? "" : ";") + name + "=" + option_text(list);
    return text;
  } else if constexpr (requires { value.begin(); }) {
    std::string text;
    for (const auto& element : value) text += (text.empty() ? "" : ",") + option_text(element);
    return text;
  } else {
    return option_text(plain_value(value));
  }
}

/// Sets all options of a struct in an object that has set(name, value): enums by their names, what
/// is absent as an optional without a value.
template <class Object, class Struct>
void add_options(Object& object, const Struct& options) {
  for_each_option(options, [&](const auto& option, const auto& value) {
    object.set(option.name, plain_value(value));
  });
}

/// Values of options by their names.
using OptionTexts = std::map<std::string, std::string>;

/// The options of a struct that have one of these effects on rows; all that rows depend on.
template <class Struct>
[[nodiscard]] OptionTexts option_texts(const Struct& options,
                                       std::initializer_list<RowEffect> effects = {
                                           RowEffect::kModel, RowEffect::kMedia,
                                           RowEffect::kAfterTower}) {
  OptionTexts texts;
  for_each_option(options, [&](const auto& option, const auto& value) {
    for (const RowEffect effect : effects) {
      if (option.facts.effect == effect)
        texts.emplace(std::string(option.name), option_text(value));
    }
  });
  return texts;
}

}  // namespace fovea
