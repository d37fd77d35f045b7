#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "fovea/error.h"
#include "fovea/export.h"

namespace fovea {

/// The file that writing to `path` makes or replaces: what symbolic links lead to, else `path`.
/// @throws Error(kIo) if that is something else than a regular file or a new name in a directory
/// that can be written (devices and pipes are refused, also where /dev/stdout leads to them).
[[nodiscard]] FOVEA_API std::string output_target(const std::string& path);

/// A file that appears under its name complete or not at all: bytes go to a file without a name in
/// the same directory, commit() flushes it to the disk and gives it the name, destruction without
/// commit leaves nothing. Symbolic links stay, what they lead to is replaced. A process that is
/// killed leaves the old file, and a temporary one only where the file system knows no files
/// without names (NFS for one). Not thread-safe.
class FOVEA_API AtomicFile {
 public:
  /// @throws Error(kIo) as output_target() does, or with the system's reason.
  explicit AtomicFile(std::string path);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  /// Appends. @throws Error(kIo) with the system's reason, for example when the disk is full.
  void write(std::span<const std::byte> bytes);
  /// Puts on the disk what was written, so that commit() has little left to fail at.
  /// @throws Error(kIo) with the system's reason.
  void flush();
  /// Makes the file visible, in place of an older one of that name. The last call on this object.
  /// @throws Error(kIo) with the system's reason; what was written is then gone.
  void commit();

 private:
  [[noreturn]] void fail(const char* action) const;
  void give_name();

  std::string path_;       // as the caller wrote it, for messages
  std::string target_;     // the file that is replaced
  std::string temporary_;  // empty while there is no such name
  int descriptor_ = -1;
};

}  // namespace fovea
