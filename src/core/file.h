#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/file_descriptor.h"

namespace fovea {

/// Whether there is something of that name, and whether it is a directory. A link to what is not
/// there is something: opening it says what is wrong. What cannot be examined counts as absent.
/// (The functions of <filesystem> throw for names that are too long.)
[[nodiscard]] bool path_exists(const std::string& path) noexcept;
[[nodiscard]] bool directory_exists(const std::string& path) noexcept;

/// The reason that the system gives in errno for the last failure.
[[nodiscard]] std::string system_reason();

/// Calls visit(name) for every entry of a directory, in no particular order. (The iterator of
/// <filesystem> ends the process where memory runs out.)
/// @throws Error(kIo) with the system's reason, and what `visit` throws.
void for_each_entry(const std::string& path, const std::function<void(std::string_view)>& visit);

/// Names of the entries of a directory, ascending. @throws Error(kIo) with the system's reason.
[[nodiscard]] std::vector<std::string> list_directory(const std::string& path);

/// A regular file opened for reading.
class InputFile {
 public:
  /// @throws Error(kNotFound) if there is nothing of that name or a link leads nowhere, Error(kIo)
  /// with the system's reason if it cannot be opened or is no regular file.
  explicit InputFile(const std::string& path);

  /// Size when it was opened.
  [[nodiscard]] std::size_t size_bytes() const noexcept { return size_bytes_; }
  [[nodiscard]] int descriptor() const noexcept { return file_.get(); }
  /// Fills `out` with the bytes from `offset` on. Thread-safe.
  /// @throws Error(kIo) with the system's reason, or if the file has become shorter than that.
  void read_at(std::size_t offset, std::span<std::byte> out) const;

 private:
  std::string path_;  // for messages
  FileDescriptor file_;
  std::size_t size_bytes_ = 0;
};

/// Reads a whole regular file.
/// @param max_bytes refuse larger files before reading.
/// @throws Error(kNotFound), Error(kIo), also if the file shrinks meanwhile,
/// Error(kInvalidArgument) if the file is larger than max_bytes.
[[nodiscard]] std::vector<std::uint8_t> read_file(const std::string& path, std::size_t max_bytes);

/// Reads the first bytes of a regular file: `max_bytes`, or all where there are fewer.
/// @throws as read_file, except for large files.
[[nodiscard]] std::vector<std::uint8_t> read_file_start(const std::string& path,
                                                        std::size_t max_bytes);

/// Writes a text as an AtomicFile; makes the folders it lies in if there are none.
/// @throws Error(kIo) with the system's reason.
void replace_file(const std::string& path, std::string_view text);

}  // namespace fovea
