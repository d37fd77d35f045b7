#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "flags/cli11.h"
#include "flags/parse.h"
#include "fovea/option.h"
#include "fovea/option_text.h"

/// Flags that are made of a table of options: name, help and values of each are those of its entry.
namespace fovea::cli {

/// Names of the options that flags have set.
using GivenOptions = std::set<std::string, std::less<>>;

/// "N", "R,G,B", "vllm|sglang": what --help shows behind the flag of an option of this type.
template <class Value>
[[nodiscard]] std::string type_name_of() {
  if constexpr (std::is_enum_v<Value>) return value_names<Value>("|");
  if constexpr (std::is_array_v<Value>) return "R,G,B";
  if constexpr (std::is_floating_point_v<Value>) return "Q";
  if constexpr (std::is_same_v<Value, std::chrono::milliseconds>) return "MS";
  if constexpr (std::is_same_v<Value, std::vector<std::int64_t>>) return "N,N,...";
  return std::is_same_v<Value, std::string> ? "TEXT" : "N";
}

/// Reads the text of a flag. @throws UsageError naming `flag` for text that is no such value, or a
/// number out of the range of `facts`.
template <class Value>
void read_value(const std::string& text, const std::string& flag, const OptionFacts& facts,
                Value& value) {
  if constexpr (std::is_enum_v<Value>) {
    value = value_named<Value>(text).value();  // the flag has checked it
  } else if constexpr (std::is_array_v<Value>) {
    read_color(text, flag, value);
  } else if constexpr (std::is_floating_point_v<Value>) {
    value = parse_part(text, flag);
  } else if constexpr (std::is_same_v<Value, std::vector<std::int64_t>>) {
    value = parse_positive_list(text, flag, facts.max);
  } else if constexpr (std::is_same_v<Value, std::string>) {
    value = text;
  } else if constexpr (std::is_same_v<Value, int>) {
    value = to_int(parse_whole(text, facts.min, flag, facts.max), flag);
  } else {
    value = static_cast<Value>(parse_whole(text, facts.min, flag, facts.max));
  }
}

/// Returns what --help shows as the default: nothing for numbers that are 0, which stand for
/// something.
template <class Value>
[[nodiscard]] std::string default_text(const Value& value) {
  if constexpr (requires { value.has_value(); }) {
    return value ? option_text(*value) : "";
  } else {
    const std::string text = option_text(value);
    return text == "0" && !std::is_floating_point_v<Value> ? "" : text;
  }
}

/// The heading of --help under which a flag stands.
[[nodiscard]] inline std::string heading_of(const OptionFacts& facts) {
  return facts.is_seldom ? seldom(facts.heading) : std::string(facts.heading);
}

/// Adds the flag of an option, which reads into `value`, and notes its name in `given`. Both live
/// as long as the parser. A truth that is on by default has a second flag, "--no-...", that turns
/// it off.
/// @throws UsageError when a value is read, as read_value(); CLI::ValidationError for another name
/// than those of an enum.
template <class Struct, class Value>
CLI::Option* add_option_flag(CLI::App& verb, const Option<Struct, Value>& option, Value& value,
                             GivenOptions& given) {
  const std::string flag = flag_of(option);
  const std::string help(option.help);
  const auto note = [&given, name = std::string(option.name)](const std::string& /*text*/) {
    given.insert(name);
  };
  const std::string heading = heading_of(option.facts);
  if constexpr (std::is_same_v<Value, bool>) {
    const std::string names = value ? flag + ",!--no-" + flag.substr(2) : flag;
    return verb.add_flag(names, value, help)->each(note)->group(heading);
  } else {
    const auto read = [flag, facts = option.facts, &value](const std::string& text) {
      if constexpr (requires { value.has_value(); }) {
        read_value(text, flag, facts, value.emplace());
      } else {
        read_value(text, flag, facts, value);
      }
    };
    CLI::Option* const added = verb.add_option_function<std::string>(flag, read, help);
    if constexpr (std::is_enum_v<Value>) {
      added->check(check([](const std::string& text) {
        return value_named<Value>(text)
                   ? std::string()
                   : "expected " + value_names<Value>() + ", got \"" + text + "\"";
      }));
    }
    return added->each(note)
        ->type_name(type_name_of<Value>())
        ->default_str(default_text(value))
        ->group(heading);
  }
}

/// Adds a flag that sets an option, and perhaps more, in words of its own: `read(text, flag)` does
/// and throws a UsageError naming `flag` for others. Name, help and heading are the option's.
template <class Struct, class Value, class Read>
CLI::Option* add_own_flag(CLI::App& verb, const Option<Struct, Value>& option, Read read) {
  const std::string flag = flag_of(option);
  return verb
      .add_option_function<std::string>(
          flag, [flag, read](const std::string& text) { read(text, flag); },
          std::string(option.help))
      ->group(heading_of(option.facts));
}

/// Adds the flags of all options of a struct but those that the verb has already, in words of its
/// own, and those in `left_out`. Lists by name have no flag but such.
template <class Struct>
void add_option_flags(CLI::App& verb, Struct& options, GivenOptions& given,
                      const GivenOptions& left_out = {}) {
  for_each_option(options, [&]<class Owner, class Value>(const Option<Owner, Value>& option,
                                                         Value& value) {
    if constexpr (!requires { typename Value::mapped_type; }) {
      if (left_out.contains(option.name) || verb.get_option_no_throw(flag_of(option)) != nullptr)
        return;
      add_option_flag(verb, option, value, given);
    }
  });
}

}  // namespace fovea::cli
