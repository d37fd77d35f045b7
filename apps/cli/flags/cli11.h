#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "flags/parse.h"

/// The kinds of flags that the verbs are made of. Each function adds one flag to `verb`, which
/// writes to a variable that lives as long as the parser. A value that the flag cannot take ends
/// the parsing with a complaint that names the flag: a CLI::ParseError or a UsageError.
namespace fovea::cli {

/// The heading of flags that --help leaves out and --help-all shows: limits and times that are
/// seldom changed. @param heading of the flags that they belong to.
[[nodiscard]] std::string seldom(std::string_view heading);
[[nodiscard]] bool is_seldom(std::string_view heading);

/// A check or transformation of the text of a flag, which returns the complaint or "". It has no
/// description of its own, so --help shows the type name of the flag alone.
[[nodiscard]] CLI::Validator check(std::function<std::string(std::string&)> function);

/// Checks that a text is one of `choices`, "a, b, c".
[[nodiscard]] CLI::Validator one_of(const std::string& choices);

/// Checks that a text names something of this kind: an empty one is that of a variable that is not
/// set.
[[nodiscard]] CLI::Validator named(const std::string& kind);

/// Adds a flag that takes one of `choices`; the help shows them and the default.
CLI::Option* add_choice(CLI::App& verb, const std::string& name, std::string& value,
                        const std::vector<std::string>& choices, const std::string& description);

/// Adds a flag that takes "a,b,c", whole numbers from 1 to `max`; the help shows `values` as the
/// default.
CLI::Option* add_positive_list(CLI::App& verb, const std::string& name,
                               std::vector<std::int64_t>& values, const std::string& description,
                               std::int64_t max);

/// Adds a flag that takes one whole number from 1 to `max`; the help shows `value` as the default
/// unless 0.
CLI::Option* add_positive(CLI::App& verb, const std::string& name, std::int64_t& value,
                          const std::string& description, std::int64_t max = kNoLimit);

/// Adds a flag that takes one whole number from 0 to `max`; the help shows no default.
CLI::Option* add_count(CLI::App& verb, const std::string& name, std::optional<std::int64_t>& value,
                       const std::string& description, std::int64_t max = kNoLimit);

/// Adds a flag that takes JSON, which `value` holds as text; empty: not given.
CLI::Option* add_json(CLI::App& verb, const std::string& name, std::string& value,
                      const std::string& description);

/// The flags about what a verb writes, under one heading of --help.
inline constexpr const char* kOutputGroup = "Output";

/// Adds a flag that names a file to write.
CLI::Option* add_output_file(CLI::App& verb, const std::string& name, std::string& path,
                             const std::string& description);

}  // namespace fovea::cli
