#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "fovea/error.h"
#include "fovea/export.h"

namespace fovea {

/// The file that writing to `path` creates or replaces: the target of symbolic links, else `path`.
/// @throws Error(kIo) unless that is a regular file, or a new name in a directory that can be
/// written. Devices and pipes are refused, even if /dev/stdout leads to them.
[[nodiscard]] FOVEA_API std::string output_target(const std::string& path);

/// Removes the temporary files below that killed processes left in a folder; the next file that
/// needs such a name does so, too. Those of processes that run stay, also on other machines.
FOVEA_API void remove_temporaries(const std::string& folder) noexcept;

/// A file that appears under its name complete or not at all. Bytes are written to an unnamed file
/// in the same directory; commit() flushes it to the disk and gives it the name; destruction
/// without commit leaves nothing. Symbolic links stay, and their target is replaced. If the process
/// is killed, the old file remains, and a temporary one `.fovea-<pid>-<n>.tmp` is left behind only
/// on file systems without unnamed files (for example NFS), or in the instant in which an older
/// file is replaced. The next file that needs a temporary name in that folder removes it. Not
/// thread-safe.
class FOVEA_API AtomicFile {
 public:
  /// @throws Error(kIo) as output_target() does, or with the system's reason.
  explicit AtomicFile(std::string path);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;
  ~AtomicFile();

  /// Appends. @throws Error(kIo) with the system's reason, for example when the disk is full.
  void write(std::span<const std::byte> bytes);
  /// Flushes what was written to the disk, so that commit() is unlikely to fail.
  /// @throws Error(kIo) with the system's reason.
  void flush();
  /// Makes the file visible, replacing an older one of that name. The last call on this object.
  /// @throws Error(kIo) with the system's reason; what was written is then lost.
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
