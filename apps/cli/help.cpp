// Layout of --help.
#include "help.h"

#include <algorithm>

namespace fovea::cli {
namespace {

constexpr std::size_t kLeftColumn = 36;

/// --table,!--no-table is shown by the parser as "--table,--no-table{false}".
std::string without_flag_values(std::string name) {
  for (std::size_t open = name.find('{'); open != std::string::npos; open = name.find('{')) {
    name.erase(open, name.find('}', open) - open + 1);
  }
  return name;
}

}  // namespace

HelpFormatter::HelpFormatter() {
  column_width(kLeftColumn);
  label("Positionals", "Arguments");
}

std::string HelpFormatter::make_group(std::string group, bool is_positional,
                                      std::vector<const CLI::Option*> options) const {
  std::string lines;
  for (const CLI::Option* option : options) {
    if (is_positional || !option->get_positional()) lines += make_option(option, is_positional);
  }
  if (lines.empty()) return lines;
  return group + ":\n" + lines + (is_positional ? "\n" : "");
}

std::string HelpFormatter::make_description(const CLI::App* app) const {
  return app->get_description() + "\n\n";
}

std::string HelpFormatter::make_usage(const CLI::App* app, std::string name) const {
  std::string usage = "Usage: " + name;
  for (const CLI::Option* option : app->get_options()) {
    if (option->get_positional()) usage += " " + make_option_usage(option);
  }
  for (const CLI::Option* option : app->get_options()) {
    if (option->get_required() && !option->get_positional()) {
      usage += " " + option->get_name() + " " + option->get_type_name();
    }
  }
  const bool has_verbs = !app->get_subcommands({}).empty();
  return usage + (has_verbs ? " VERB" : "") + " [flags]\n\n";
}

std::string HelpFormatter::make_option_name(const CLI::Option* option, bool is_positional) const {
  std::string name = without_flag_values(Formatter::make_option_name(option, is_positional));
  const std::size_t comma = name.find(',');
  if (comma != std::string::npos) name.insert(comma + 1, " ");
  return name;
}

std::string HelpFormatter::make_option_opts(const CLI::Option* option) const {
  const std::string type = option->get_type_name();
  return option->get_type_size() == 0 || type.empty() ? "" : " " + type;
}

std::string HelpFormatter::make_option_desc(const CLI::Option* option) const {
  std::string text = option->get_description();
  if (option->get_required() && !option->get_positional()) text += " (required)";
  if (!option->get_default_str().empty()) text += " (default: " + option->get_default_str() + ")";
  return text;
}

}  // namespace fovea::cli
