// Kinds of flags, on top of the command line parser.
#include "flags/cli11.h"

#include <algorithm>

#include "report/text.h"

namespace fovea::cli {
namespace {

constexpr std::string_view kSeldomSuffix = ", seldom changed";

}  // namespace

std::string seldom(std::string_view heading) { return std::string(heading).append(kSeldomSuffix); }

bool is_seldom(std::string_view heading) { return heading.ends_with(kSeldomSuffix); }

CLI::Validator check(std::function<std::string(std::string&)> function) {
  return CLI::Validator(std::move(function), "");
}

CLI::Validator one_of(const std::string& choices) {
  return check([choices, names = split_commas(choices)](const std::string& text) {
    const bool known = std::ranges::find(names, text) != names.end();
    return known ? std::string() : "expected " + choices + ", got \"" + text + "\"";
  });
}

CLI::Validator named(const std::string& kind) {
  return check([kind](const std::string& text) {
    return text.empty() ? "expected the name of a " + kind + ", got \"\"" : std::string();
  });
}

CLI::Option* add_choice(CLI::App& verb, const std::string& name, std::string& value,
                        const std::vector<std::string>& choices, const std::string& description) {
  return verb.add_option(name, value, description)
      ->type_name(join(choices, "|"))
      ->check(one_of(join(choices, ", ")))
      ->capture_default_str();
}

CLI::Option* add_positive_list(CLI::App& verb, const std::string& name,
                               std::vector<std::int64_t>& values, const std::string& description,
                               std::int64_t max) {
  const auto read = [&values, name, max](const std::string& text) {
    values = parse_positive_list(text, name, max);
  };
  CLI::Option* option =
      verb.add_option_function<std::string>(name, read, description)->type_name("N,N,...");
  return values.empty() ? option : option->default_str(join(values, ","));
}

CLI::Option* add_positive(CLI::App& verb, const std::string& name, std::int64_t& value,
                          const std::string& description, std::int64_t max) {
  const auto read = [&value, name, max](const std::string& text) {
    value = parse_whole(text, 1, name, max);
  };
  CLI::Option* option =
      verb.add_option_function<std::string>(name, read, description)->type_name("N");
  return value == 0 ? option : option->default_str(std::to_string(value));
}

CLI::Option* add_count(CLI::App& verb, const std::string& name, std::optional<std::int64_t>& value,
                       const std::string& description, std::int64_t max) {
  const auto read = [&value, name, max](const std::string& text) {
    value = parse_whole(text, 0, name, max);
  };
  return verb.add_option_function<std::string>(name, read, description)->type_name("N");
}

CLI::Option* add_json(CLI::App& verb, const std::string& name, std::string& value,
                      const std::string& description) {
  return verb.add_option(name, value, description)
      ->type_name("JSON")
      ->check(check([](const std::string& text) {
        return text.empty() ? "expected a JSON object, got \"\"" : std::string();
      }));
}

CLI::Option* add_output_file(CLI::App& verb, const std::string& name, std::string& path,
                             const std::string& description) {
  return verb.add_option(name, path, description)
      ->type_name("FILE")
      ->check(check([](const std::string& text) {
        return text == "-" ? "results are not written to stdout; ./- is a file of that name"
                           : std::string();
      }))
      ->check(named("file"))
      ->group(kOutputGroup);
}

}  // namespace fovea::cli
