#pragma once

#include <CLI/CLI.hpp>
#include <cstddef>
#include <string>
#include <vector>

namespace fovea::cli {

/// How --help looks: flag and type on the left, meaning on the right with the default or "required"
/// behind it. A positional that has a long name as well (MODEL, --model) is listed once. Lines are
/// broken between words, so that they fit into `columns`; lines of examples are left alone.
class HelpFormatter final : public CLI::Formatter {
 public:
  explicit HelpFormatter(std::size_t columns);
  [[nodiscard]] std::string make_help(const CLI::App* app, std::string name,
                                      CLI::AppFormatMode mode) const override;
  [[nodiscard]] std::string make_group(std::string group, bool is_positional,
                                       std::vector<const CLI::Option*> options) const override;
  [[nodiscard]] std::string make_subcommands(const CLI::App* app,
                                             CLI::AppFormatMode mode) const override;
  [[nodiscard]] std::string make_subcommand(const CLI::App* verb) const override;
  [[nodiscard]] std::string make_description(const CLI::App* app) const override;
  [[nodiscard]] std::string make_footer(const CLI::App* app) const override;
  [[nodiscard]] std::string make_usage(const CLI::App* app, std::string name) const override;
  [[nodiscard]] std::string make_option_name(const CLI::Option* option,
                                             bool is_positional) const override;
  [[nodiscard]] std::string make_option_opts(const CLI::Option* option) const override;
  [[nodiscard]] std::string make_option_desc(const CLI::Option* option) const override;

 private:
  [[nodiscard]] std::size_t right_columns() const;
  [[nodiscard]] std::string groups_text(const CLI::App& app, bool all) const;

  std::size_t columns_;
};

}  // namespace fovea::cli
