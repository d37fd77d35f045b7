#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "core/file_descriptor.h"

namespace fovea::serve {

/// A file under a name that no reader looks for, `.fovea-<pid>-<n>.tmp`, until it is moved to its
/// own; without that it is gone at the end. Unlike AtomicFile it waits for no disk: what it holds
/// can be made again. Not thread-safe.
class TemporaryFile {
 public:
  /// Makes the folder, too, if it is not there. All who may enter the folder may read the file.
  /// @throws Error(kIo) with the system's reason, without the path.
  explicit TemporaryFile(const std::string& folder);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  /// Appends. @throws Error(kIo).
  void write(std::span<const std::byte> bytes);
  /// Gives the file its name in the same folder, in place of what has it. The last call.
  /// @throws Error(kIo).
  void move_to(const std::string& path);

 private:
  std::string path_;  // empty once it has been moved
  FileDescriptor file_;
};

/// Whether a file of a folder has the name of a TemporaryFile.
[[nodiscard]] bool is_temporary_name(const std::string& name);

}  // namespace fovea::serve
