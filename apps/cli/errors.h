#pragma once

#include <stdexcept>

namespace fovea::cli {

/// Exit codes of the program (docs/cli.md).
inline constexpr int kExitOk = 0;
inline constexpr int kExitFailure = 1;
inline constexpr int kExitUsage = 2;

/// The command line itself is wrong: the message says what was expected and what came. Anything
/// that depends on files or devices is a fovea::Error instead.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace fovea::cli
