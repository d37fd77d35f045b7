#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace fovea {

/// A file mapped read-only. A file that is truncated while mapped kills the process when the lost
/// part is read (SIGBUS); replace checkpoint files by renaming, never in place.
class MappedFile {
 public:
  /// @throws Error(kNotFound) if there is no such regular file, Error(kIo) otherwise.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace fovea
