// Values of options that nothing else looks at before they are used.
#include "engine/option_values.h"

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "core/check.h"
#include "fovea/option_table.h"

namespace fovea {
namespace {

template <class Whole>
void check_range(std::string_view name, Whole value, std::int64_t max) {
  FOVEA_CHECK(std::cmp_greater_equal(value, 0), kInvalidArgument, name,
              ": expected at least 0, got ", value);
  FOVEA_CHECK(std::cmp_less_equal(value, max), kInvalidArgument, name, ": expected at most ", max,
              ", got ", value);
}

template <class Struct, class Value>
void check_value(const Option<Struct, Value>& option, const Value& value) {
  if constexpr (std::is_enum_v<Value>) {
    const auto number = static_cast<std::size_t>(value);
    FOVEA_CHECK(number < kValueNames<Value>.size(), kInvalidArgument, option.name,
                ": expected one of ", value_names<Value>(), "; there is no value of number ",
                number);
  } else if constexpr (std::is_same_v<Value, std::chrono::milliseconds>) {
    check_range(option.name, value.count(), option.facts.max);
  } else if constexpr (std::integral<Value> && !std::is_same_v<Value, bool>) {
    // The table bounds flags, which are signed; a seed has all bits.
    if constexpr (std::is_signed_v<Value>) check_range(option.name, value, option.facts.max);
  }
}

template <class Struct>
void check_all(const Struct& options) {
  for_each_option(options,
                  [](const auto& option, const auto& value) { check_value(option, value); });
}

}  // namespace

void check_values(const EngineOptions& options) { check_all(options); }

void check_values(const EncodeOptions& options) { check_all(options); }

}  // namespace fovea
