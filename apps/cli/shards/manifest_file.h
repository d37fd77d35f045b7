#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/file_descriptor.h"

namespace fovea::cli {

/// A manifest that is written: by one process at a time, and only at its end. A lock of the system
/// keeps others away, which ends with the process.
class ManifestFile {
 public:
  /// Opens the file, or makes an empty one.
  /// @throws Error(kUnavailable) if another process has it, Error(kIo) with the system's reason.
  explicit ManifestFile(std::string path);
  /// Removes the file if nothing is in it.
  ~ManifestFile();
  ManifestFile(const ManifestFile&) = delete;
  ManifestFile& operator=(const ManifestFile&) = delete;

  /// Cuts off what is behind these bytes. @throws Error(kIo).
  void truncate(std::int64_t bytes);
  /// Appends whole lines and flushes them to the disk. If that fails the file is as it was, as far
  /// as the system can do that. @throws Error(kIo) with the system's reason.
  void append(std::string_view lines);

 private:
  [[noreturn]] void fail(const char* action) const;

  std::string path_;
  FileDescriptor file_;
  std::int64_t bytes_ = 0;
};

}  // namespace fovea::cli
