#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace fovea::cli {

/// How --help looks: flag and type on the left, meaning on the right with the default or "required"
/// behind it. A positional that has a long name as well (MODEL, --model) is listed once.
class HelpFormatter final : public CLI::Formatter {
 public:
  HelpFormatter();
  [[nodiscard]] std::string make_group(std::string group, bool is_positional,
                                       std::vector<const CLI::Option*> options) const override;
  [[nodiscard]] std::string make_description(const CLI::App* app) const override;
  [[nodiscard]] std::string make_usage(const CLI::App* app, std::string name) const override;
  [[nodiscard]] std::string make_option_name(const CLI::Option* option,
                                             bool is_positional) const override;
  [[nodiscard]] std::string make_option_opts(const CLI::Option* option) const override;
  [[nodiscard]] std::string make_option_desc(const CLI::Option* option) const override;
};

}  // namespace fovea::cli
