#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>

/// What an option is: words for tables of options (fovea/option_table.h has those of the library),
/// and the functions that everything which lists options is made of. All of them are constant
/// expressions where their arguments are, and throw nothing but what a visitor throws.
namespace fovea {

/// What an option changes of rows, and so who must not mix rows of two of its values.
enum class RowEffect : std::uint8_t {
  kNone,        ///< nothing: equal rows, or none and an error
  kModel,       ///< weights or arithmetic of the tower, which Engine::fingerprint() names
  kMedia,       ///< what the tower is given of a medium
  kAfterTower,  ///< what is made of the tower's rows
};

/// What is said of an option besides its name, its member and what it does.
struct OptionFacts {
  RowEffect effect = RowEffect::kNone;
  std::string_view heading = {};  ///< of flags that belong together
  std::string_view flag = {};     ///< of the program; empty: the name with dashes, "--min-pixels"
  std::int64_t min = 1;           ///< whole numbers that the flag takes
  std::int64_t max = std::numeric_limits<std::int64_t>::max();
  bool is_path = false;    ///< names a place of this machine: clients are not shown it
  bool is_seldom = false;  ///< --help leaves the flag out, --help-all does not
};

/// An option: a member of `Struct`.
template <class Struct, class Value>
struct Option {
  std::string_view name;  ///< keyword in Python, and key wherever options are written down
  Value Struct::*member;
  std::string_view help;  ///< what it does, without a full stop
  OptionFacts facts;
};

template <class Struct, class Value>
[[nodiscard]] constexpr Option<Struct, Value> option(std::string_view name, Value Struct::*member,
                                                     std::string_view help,
                                                     const OptionFacts& facts = {}) {
  return {name, member, help, facts};
}

/// A member of `Struct` whose own options are options of `Struct`, too.
template <class Struct, class Part>
struct OptionPart {
  Part Struct::*member;
};

template <class Struct, class Part>
[[nodiscard]] constexpr OptionPart<Struct, Part> option_part(Part Struct::*member) {
  return {member};
}

/// The table of a struct: a tuple of Option and OptionPart. It is what
/// `constexpr auto option_table(std::type_identity<Struct>)` returns, a function in the namespace
/// of the struct.
template <class Struct>
inline constexpr auto kOptionTable = option_table(std::type_identity<Struct>{});

/// Calls `visitor(option, value)` for every option of a struct, in the order of its table, those of
/// its parts included. `value` refers to the member, which is constant if `options` is.
template <class Struct, class Visitor>
constexpr void for_each_option(Struct& options, Visitor&& visitor) {
  const auto visit = [&]<class Entry>(const Entry& entry) {
    if constexpr (requires { entry.facts; }) {
      visitor(entry, options.*entry.member);
    } else {
      for_each_option(options.*entry.member, visitor);
    }
  };
  std::apply([&](const auto&... entries) { (visit(entries), ...); },
             kOptionTable<std::remove_const_t<Struct>>);
}

/// The option of a member; its name is empty if the table has none.
template <class Struct, class Value>
[[nodiscard]] constexpr Option<Struct, Value> find_option(Value Struct::*member) {
  Option<Struct, Value> found{};
  const auto compare = [&]<class Entry>(const Entry& entry) {
    if constexpr (std::is_same_v<Entry, Option<Struct, Value>>) {
      if (entry.member == member) found = entry;
    }
  };
  std::apply([&](const auto&... entries) { (compare(entries), ...); }, kOptionTable<Struct>);
  return found;
}

/// The flag of the program that sets an option.
template <class Struct, class Value>
[[nodiscard]] std::string flag_of(const Option<Struct, Value>& option) {
  if (!option.facts.flag.empty()) return std::string(option.facts.flag);
  std::string flag = "--";
  for (const char c : option.name) flag += c == '_' ? '-' : c;
  return flag;
}

/// What an enum without names has: no definition, so that to use it does not compile.
template <class Enum>
struct NoValueNames;

/// Names of the values of an enum, as users write them, in the order of the enumerators, which
/// count from 0. Every enum that is the type of an option has a specialisation; to ask for its
/// names takes the header that has it.
template <class Enum>
inline constexpr NoValueNames<Enum> kValueNames{};

/// Another name of a value, as in "bf16" for "bfloat16".
struct ValueAlias {
  std::string_view alias;
  std::string_view name;
};

/// Other names that values of an enum are taken by; nothing writes them. None unless there is a
/// specialisation.
template <class Enum>
inline constexpr std::array<ValueAlias, 0> kValueAliases{};

/// The name that an alias stands for, or the text itself.
/// @param aliases such as kValueAliases<Enum>.
template <class Aliases>
[[nodiscard]] constexpr std::string_view full_name(std::string_view text, const Aliases& aliases) {
  for (const ValueAlias& known : aliases) {
    if (known.alias == text) return known.name;
  }
  return text;
}

/// @param value an enumerator. @return its name.
template <class Enum>
requires std::is_enum_v<Enum>
[[nodiscard]] constexpr std::string_view value_name(Enum value) {
  return kValueNames<Enum>[static_cast<std::size_t>(value)];
}

/// The value of that name or alias, if there is one.
template <class Enum>
requires std::is_enum_v<Enum>
[[nodiscard]] constexpr std::optional<Enum> value_named(std::string_view name) {
  name = full_name(name, kValueAliases<Enum>);
  for (std::size_t i = 0; i < kValueNames<Enum>.size(); ++i) {
    if (kValueNames<Enum>[i] == name) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

/// "vllm, vllm-0.23, transformers": all names of an enum, with `separator` between them.
template <class Enum>
[[nodiscard]] std::string value_names(std::string_view separator = ", ") {
  std::string names;
  for (const std::string_view name : kValueNames<Enum>) {
    if (!names.empty()) names += separator;
    names += name;
  }
  return names;
}

}  // namespace fovea
