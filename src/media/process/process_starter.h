#pragma once

#include <memory>
#include <string>
#include <vector>

#include "media/process/child_process.h"

namespace fovea::media {

/// Starts processes on a thread of its own: Linux tells a process that its parent is gone when the
/// thread that started it ends, and threads of callers come and go. Thread-safe.
class ProcessStarter {
 public:
  ProcessStarter();
  ~ProcessStarter();
  ProcessStarter(const ProcessStarter&) = delete;
  ProcessStarter& operator=(const ProcessStarter&) = delete;

  /// As the constructor of ChildProcess, and waits for it.
  [[nodiscard]] ChildProcess start(const std::string& program,
                                   const std::vector<std::string>& arguments);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fovea::media
