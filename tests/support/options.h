#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "fovea/option_table.h"
#include "fovea/option_text.h"

/// Tables of options as tests go through them.
namespace fovea::test {

/// Gives an option another value, one that its flag takes.
template <class Value>
void change(Value& value) {
  if constexpr (std::is_same_v<Value, bool>) {
    value = !value;
  } else if constexpr (std::is_enum_v<Value>) {
    const auto last = static_cast<Value>(kValueNames<Value>.size() - 1);
    value = value == last ? Value{} : last;
  } else if constexpr (std::is_array_v<Value>) {
    value[1] ^= 5U;
  } else if constexpr (std::is_floating_point_v<Value>) {
    value = value / 2 + 0.25;
  } else if constexpr (std::is_unsigned_v<Value>) {
    value = value == 0 ? Value{1} << 30 : value + 1;  // a number of bytes, or of anything
  } else if constexpr (std::is_integral_v<Value>) {
    ++value;
  } else if constexpr (std::is_same_v<Value, std::chrono::milliseconds>) {
    value += std::chrono::milliseconds(20);
  } else if constexpr (std::is_same_v<Value, std::optional<std::int64_t>>) {
    value = value.value_or(4095) + 1;
  } else if constexpr (std::is_same_v<Value, std::string>) {
    value = "cpu";  // also the name of a folder
  } else if constexpr (std::is_same_v<Value, std::vector<std::int64_t>>) {
    value.push_back(64);
  } else {
    value["path"] = {64, 128};
  }
}

/// Calls `use(name, facts, options)` for every option of `base`, with a copy in which that option
/// alone has another value.
template <class Struct, class Use>
void for_each_change(const Struct& base, Use use) {
  for_each_option(base, [&](const auto& option, const auto& /*value*/) {
    Struct changed = base;
    for_each_option(changed, [&](const auto& other, auto& value) {
      if (other.name == option.name) change(value);
    });
    use(std::string(option.name), option.facts, changed);
  });
}

/// All options of a struct, whatever they have an effect on.
template <class Struct>
[[nodiscard]] OptionTexts all_texts(const Struct& options) {
  return option_texts(
      options, {RowEffect::kNone, RowEffect::kModel, RowEffect::kMedia, RowEffect::kAfterTower});
}

enum class OwnMode : std::uint8_t { kPlain, kFancy };

/// Options that the library does not have: what is made of tables works for them, too.
struct OwnLimits {
  std::size_t most_bytes = 7;
};
struct OwnOptions {
  OwnMode mode = OwnMode::kPlain;
  bool strict = true;
  std::optional<std::int64_t> side;
  std::chrono::milliseconds patience{5};
  std::uint8_t tint[3] = {1, 2, 3};
  OwnLimits limits;
};

constexpr auto option_table(std::type_identity<OwnLimits>) {
  return std::tuple{option("most_bytes", &OwnLimits::most_bytes, "Refuse more")};
}

constexpr auto option_table(std::type_identity<OwnOptions>) {
  return std::tuple{
      option("mode", &OwnOptions::mode, "How", {.effect = RowEffect::kMedia}),
      option("strict", &OwnOptions::strict, "Refuse what is odd"),
      option("side", &OwnOptions::side, "Pixels", {.effect = RowEffect::kAfterTower, .max = 9999}),
      option("patience_ms", &OwnOptions::patience, "Wait", {.flag = "--patience"}),
      option("tint", &OwnOptions::tint, "Colour", {.effect = RowEffect::kMedia}),
      option_part(&OwnOptions::limits)};
}

}  // namespace fovea::test

template <>
inline constexpr std::array<std::string_view, 2> fovea::kValueNames<fovea::test::OwnMode>{"plain",
                                                                                          "fancy"};
