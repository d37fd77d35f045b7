// Flags from the environment and from a file.
#include "flags/configuration.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <map>
#include <optional>

#include "core/json.h"
#include "core/json_writer.h"
#include "errors.h"
#include "flags/json_text.h"
#include "flags/parse.h"
#include "flags/removed_flags.h"
#include "fovea/error.h"
#include "report/table.h"
#include "report/text.h"

namespace fovea::cli {
namespace {

/// Values of flags by their names without dashes in front.
using FileValues = std::map<std::string, std::vector<std::string>>;

/// "max-connections" of --max-connections; empty for what has no such name.
std::string name_of(const CLI::Option& option) {
  const std::vector<std::string>& names = option.get_lnames();
  return names.empty() ? "" : names.front();
}

std::string variable_of(const std::string& name) {
  std::string variable = "FOVEA_";
  for (const char c : name) {
    variable += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return variable;
}

bool takes_several(const CLI::Option& option) { return option.get_items_expected_max() > 1; }

std::string text_of(const JsonView& value, const std::string& where) {
  if (value.is_string()) return value.as_string();
  if (value.is_array() || value.is_object() || value.is_null()) {
    throw UsageError(where + ": expected text, a number, true or false, got " + value.summary());
  }
  return value.is_number() && !value.is_integer() ? json_number(value.as_number())
                                                  : value.summary();
}

void read_member(const std::string& file, std::string key, const JsonView& value,
                 FileValues& values) {
  std::ranges::replace(key, '_', '-');
  const std::string where = file + ": " + shown(key);
  std::vector<std::string> texts;
  if (value.is_array()) {
    for (const JsonView& one : value.elements()) texts.push_back(text_of(one, where));
  } else {
    texts.push_back(text_of(value, where));
  }
  if (!values.emplace(key, std::move(texts)).second) throw UsageError(where + ": given twice");
}

/// Some hundred flags, each with a value or a list, in sections or not.
constexpr JsonLimits kFileLimits{
    .bytes = std::size_t{1} << 20, .values = 100'000, .depth = 8, .key_bytes = 1'000};

JsonDocument parse_file(const std::string& file) {
  try {
    return JsonDocument::read(file, {.duplicates = DuplicateKeys::kReject,
                                     .non_finite = false,
                                     .comments = true,
                                     .limits = kFileLimits});
  } catch (const Error& error) {
    throw UsageError("--config: " + std::string(error.what()));
  }
}

FileValues read_file(const std::string& file) {
  const JsonDocument document = parse_file(file);
  const JsonView root = document.root();
  if (!root.is_object()) throw UsageError("--config: " + file + ": expected a JSON object");
  FileValues values;
  for (std::size_t i = 0; i < root.num_members(); ++i) {
    const JsonView value = root.member(i);
    if (!value.is_object()) {
      read_member(file, std::string(root.key(i)), value, values);
      continue;
    }
    for (std::size_t inner = 0; inner < value.num_members(); ++inner)
      read_member(file, std::string(value.key(inner)), value.member(inner), values);
  }
  return values;
}

/// Reads values into a flag as if they were typed.
void set(CLI::Option& option, const std::vector<std::string>& values, const std::string& origin) {
  if (values.size() > 1 && !takes_several(option)) {
    throw UsageError(origin + ": --" + name_of(option) + " takes one value, got " +
                     std::to_string(values.size()));
  }
  if (values.empty()) throw UsageError(origin + ": --" + name_of(option) + " has an empty list");
  try {
    for (const std::string& value : values) option.add_result(value);
    option.run_callback();
  } catch (const std::exception& error) {
    throw UsageError(origin + ": " + error.what());
  }
}

std::vector<std::string> variable_values(const CLI::Option& option, const char* text) {
  return takes_several(option) ? split_commas(text) : std::vector<std::string>{text};
}

/// A flag that was not typed, from where else it is given. Takes what it needs out of `values`.
std::string fill(CLI::Option& option, const std::string& file, FileValues& values) {
  const std::string name = name_of(option);
  const auto in_file = values.find(name);
  std::optional<std::vector<std::string>> of_file;
  if (in_file != values.end()) {
    of_file = std::move(in_file->second);
    values.erase(in_file);
  }
  if (option.count() > 0) return "command line";
  std::string variable = variable_of(name);
  if (const char* text = std::getenv(variable.c_str())) {
    set(option, variable_values(option, text), variable);
    return variable;
  }
  if (!of_file) return "default";
  set(option, *of_file, file);
  return file;
}

/// @throws UsageError for a variable that would have set a flag once.
void refuse_removed_variables() {
  for (const RemovedFlag& flag : kRemovedFlags) {
    const std::string variable = variable_of(std::string(flag.name.substr(2)));
    if (std::getenv(variable.c_str()) == nullptr) continue;
    throw UsageError(variable + ": there is no flag of this name; " + std::string(flag.instead));
  }
}

[[noreturn]] void refuse_key(const std::string& file, const std::string& key,
                             const std::vector<std::string>& names) {
  const std::string complaint = file + ": no flag is called " + key;
  if (const RemovedFlag* const removed = find_removed_flag("--" + key)) {
    throw UsageError(complaint + "; " + std::string(removed->instead));
  }
  const std::optional<std::string> nearest = nearest_name(key, names);
  throw UsageError(complaint + (nearest ? "; did you mean " + *nearest + "?" : ""));
}

void apply(CLI::App& verb, Configuration& configuration, const std::vector<std::string>& secrets) {
  refuse_removed_variables();
  FileValues values;
  if (!configuration.file.empty()) values = read_file(configuration.file);
  std::vector<std::string> names;
  for (CLI::Option* option : verb.get_options()) {
    const std::string name = name_of(*option);
    if (name.empty() || name == "help" || name == "help-all" || name == "config" ||
        name == "print-config")
      continue;
    names.push_back(name);
    const std::string origin = fill(*option, configuration.file, values);
    const bool is_secret = std::ranges::find(secrets, name) != secrets.end();
    const std::string value =
        origin == "default" ? option->get_default_str() : join(option->results(), ",");
    configuration.settings.push_back(
        {"--" + name, is_secret && !value.empty() ? "***" : value, origin});
  }
  if (!values.empty()) refuse_key(configuration.file, values.begin()->first, names);
}

}  // namespace

void add_configuration(CLI::App& verb, Configuration& configuration,
                       const std::vector<std::string>& secrets) {
  verb.add_option("--config", configuration.file,
                  "JSON file with values for flags that are neither typed nor in the environment")
      ->type_name("FILE")
      ->envname("FOVEA_CONFIG")
      ->group("Configuration");
  verb.add_flag("--print-config", configuration.print,
                "Print every flag with its value and where that came from, and end")
      ->group("Configuration");
  verb.parse_complete_callback(
      [&verb, &configuration, secrets] { apply(verb, configuration, secrets); });
}

std::string settings_table(const std::vector<Setting>& settings) {
  Table table({{"flag"}, {"value"}, {"from"}});
  for (const Setting& setting : settings) {
    table.add_row({setting.flag, setting.value, setting.origin});
  }
  return table.text();
}

}  // namespace fovea::cli
