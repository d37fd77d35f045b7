#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace fovea {

/// A file mapped read-only; an empty file is an empty span. A file that is truncated while mapped
/// kills the process when the lost part is read (SIGBUS): replace checkpoint files by renaming,
/// never in place.
class MappedFile {
 public:
  /// @throws Error(kNotFound) if there is nothing of that name, Error(kIo) with the system's reason
  /// if it cannot be opened or mapped, or is no regular file.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return {data_, size_bytes_}; }

 private:
  std::byte* data_ = nullptr;  // mapped without write permission
  std::size_t size_bytes_ = 0;
};

}  // namespace fovea
