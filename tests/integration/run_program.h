#pragma once

#include <string>
#include <vector>

namespace fovea::test {

/// What a finished program left behind.
struct ProgramResult {
  int exit_code = -1;  ///< -1: it was killed by a signal
  std::string out;
  std::string err;
};

/// Runs the built program `fovea` with these arguments, without a shell, and waits for it. It runs
/// as a user without a home, so that it keeps nothing that another test could find.
/// @param folder where it runs; empty: here. @param caches its XDG_CACHE_HOME; empty: none.
/// @param program a copy of it, absolute.
/// @throws std::runtime_error if it cannot be started.
[[nodiscard]] ProgramResult run_fovea(std::vector<std::string> arguments,
                                      const std::string& folder = "",
                                      const std::string& caches = "",
                                      const std::string& program = FOVEA_TEST_PROGRAM);

/// Expects a failure of the contract: this exit code, nothing on stdout, and exactly one line
/// `fovea: error: ...` on stderr that contains `part`.
void expect_failure(const ProgramResult& result, int exit_code, const std::string& part);

/// Expects exit code 0 and an empty stderr.
void expect_success(const ProgramResult& result);

}  // namespace fovea::test
