#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace fovea::test {

/// The built program while it runs. Its stdout goes nowhere.
class FoveaProcess {
 public:
  /// Starts it as run_fovea() does. @param messages file for its stderr.
  /// @throws std::runtime_error if there is no process to be had.
  FoveaProcess(std::vector<std::string> arguments, const std::string& messages);
  /// Kills it if nobody has waited for it.
  ~FoveaProcess();
  FoveaProcess(const FoveaProcess&) = delete;
  FoveaProcess& operator=(const FoveaProcess&) = delete;

  void signal(int number) const;
  /// Waits for its end. @return the exit code, -1 if a signal ended it.
  int wait();

 private:
  pid_t child_ = -1;
};

}  // namespace fovea::test
