// Layout of --help.
#include "help.h"

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <utility>

#include "flags/cli11.h"
#include "report/text.h"

namespace fovea::cli {
namespace {

constexpr std::size_t kLeftColumn = 36;
constexpr std::size_t kNarrowLeftColumn = 8;  // flags stand above what they mean
constexpr std::size_t kFewestRightColumns = 34;

/// --table,!--no-table is shown by the parser as "--table,--no-table{false}".
std::string without_flag_values(std::string name) {
  for (std::size_t open = name.find('{'); open != std::string::npos; open = name.find('{')) {
    name.erase(open, name.find('}', open) - open + 1);
  }
  return name;
}

/// Makes one line of each paragraph. Lines of examples, and those that announce something, end it.
std::string paragraphs(const std::string& text) {
  std::string result;
  std::string line;
  bool may_go_on = false;
  for (std::istringstream lines(text); std::getline(lines, line);) {
    const bool is_prose = !line.empty() && !line.starts_with(' ');
    if (!result.empty()) result += may_go_on && is_prose ? ' ' : '\n';
    result += line;
    may_go_on = is_prose && !line.ends_with(':');
  }
  return result;
}

}  // namespace

HelpFormatter::HelpFormatter(std::size_t columns) : columns_(columns) {
  const bool is_narrow = columns < kLeftColumn + kFewestRightColumns;
  column_width(is_narrow ? kNarrowLeftColumn : kLeftColumn);
  label("Positionals", "Arguments");
}

std::size_t HelpFormatter::right_columns() const {
  const std::size_t left = get_column_width();
  return columns_ > left ? columns_ - left : 1;
}

std::string HelpFormatter::make_help(const CLI::App* app, std::string name,
                                     CLI::AppFormatMode mode) const {
  return make_description(app) + make_usage(app, std::move(name)) + make_positionals(app) +
         groups_text(*app, mode == CLI::AppFormatMode::All) + make_subcommands(app, mode) + "\n" +
         make_footer(app);
}

std::string HelpFormatter::groups_text(const CLI::App& app, bool all) const {
  std::string shown;
  std::string seldom_shown;
  std::int64_t num_hidden = 0;
  for (const std::string& group : app.get_groups()) {
    const std::vector<const CLI::Option*> options =
        app.get_options([&group](const CLI::Option* option) {
          return option->get_group() == group && option->nonpositional();
        });
    if (group.empty() || options.empty()) continue;
    if (!is_seldom(group)) {
      shown += make_group(group, false, options) + "\n";
    } else if (all) {
      seldom_shown += make_group(group, false, options) + "\n";
    } else {
      num_hidden += std::ssize(options);
    }
  }
  std::string text = shown + seldom_shown;
  if (num_hidden > 0) text += "--help-all shows " + counted(num_hidden, "more flag") + ".\n\n";
  if (!text.empty()) text.pop_back();
  return text;
}

/// The flags of each verb are a page of their own, with --help-all, too.
std::string HelpFormatter::make_subcommands(const CLI::App* app,
                                            CLI::AppFormatMode /*mode*/) const {
  return Formatter::make_subcommands(app, CLI::AppFormatMode::Normal);
}

std::string HelpFormatter::make_subcommand(const CLI::App* verb) const {
  std::stringstream out;
  CLI::detail::format_help(out, verb->get_display_name(true),
                           wrapped(verb->get_description(), right_columns()), get_column_width());
  return out.str();
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
  return wrapped(app->get_description(), columns_) + "\n\n";
}

std::string HelpFormatter::make_footer(const CLI::App* app) const {
  const std::string footer = app->get_footer();
  return footer.empty() ? footer : wrapped(paragraphs(footer), columns_) + "\n";
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
  if (!option->get_default_str().empty()) {
    text.append(" (default:").append(kUnbrokenBlank).append(option->get_default_str()).append(")");
  }
  return wrapped(text, right_columns());
}

}  // namespace fovea::cli
