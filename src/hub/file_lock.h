#pragma once

#include <string>

#include "core/file_descriptor.h"
#include "fovea/log.h"

namespace fovea::hub {

/// A lock that processes of this machine, those of huggingface_hub too, hold while they write a
/// file of the hub. Source: flock(2); huggingface_hub 2.4, `WeakFileLock`.
class FileLock {
 public:
  /// Waits for the lock. Makes its file, which stays, and the folders it lies in.
  /// @throws Error(kIo) with the system's reason, and as check_interrupt().
  FileLock(const std::string& path, LogSink* log);

 private:
  FileDescriptor file_;  // its end lets go
};

}  // namespace fovea::hub
