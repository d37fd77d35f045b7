#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace fovea::cli {

/// A flag and what it came to be.
struct Setting {
  std::string flag;    ///< "--port"
  std::string value;   ///< "***" for a secret
  std::string origin;  ///< "command line", "FOVEA_PORT", the path of a file, "default"
};

/// The values of --config and --print-config, and what they lead to.
struct Configuration {
  std::string file;
  bool print = false;
  std::vector<Setting> settings;  ///< of all flags, when the command line has been parsed
};

/// Adds --config FILE and --print-config, and lets every flag of the verb that is not on the
/// command line be set by the environment, FOVEA_MAX_CONNECTIONS for --max-connections, or else by
/// the file: JSON with the names of flags without dashes in front, in sections or not, // comments
/// allowed:
///
///   {"port": 8080, "limits": {"max-connections": 100}, "api-key": ["a", "b"]}
///
/// Several values are separated by commas in the environment, and an array in the file. A flag of
/// another origin is read as if it were typed. Call when all flags have been added; those in
/// `secrets` are never printed.
/// A wrong value, an unknown key and a variable of a flag that there is no more end the parsing
/// with a UsageError that says where it stands.
void add_configuration(CLI::App& verb, Configuration& configuration,
                       const std::vector<std::string>& secrets);

/// The settings as a table.
[[nodiscard]] std::string settings_table(const std::vector<Setting>& settings);

}  // namespace fovea::cli
