#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace fovea {

/// Reads a whole regular file.
/// @param max_bytes refuse larger files before reading.
/// @throws Error(kNotFound), Error(kIo), Error(kInvalidArgument) if the file is larger than
/// max_bytes.
[[nodiscard]] std::vector<std::uint8_t> read_file(const std::string& path, std::size_t max_bytes);

/// A file that appears under its name complete or not at all: bytes go to a temporary name in the
/// same directory, commit() flushes and renames, destruction without commit removes.
class AtomicFile {
 public:
  /// @throws Error(kIo) with the system's reason.
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// @throws Error(kIo), for example when the disk is full.
  void write(std::span<const std::byte> bytes);
  /// Makes the file visible. @throws Error(kIo).
  void commit();

 private:
  std::string path_;
  std::string temporary_;
  int descriptor_ = -1;
};

}  // namespace fovea
