#pragma once

#include <cstddef>
#include <span>
#include <utility>

namespace fovea {

/// An open file or socket, closed in the destructor. Move-only.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  /// @param number as the system gave it; negative: nothing is open.
  explicit FileDescriptor(int number) noexcept : number_(number) {}
  ~FileDescriptor() { reset(); }
  FileDescriptor(FileDescriptor&& other) noexcept : number_(other.release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }

  [[nodiscard]] int get() const noexcept { return number_; }
  [[nodiscard]] bool is_open() const noexcept { return number_ >= 0; }
  /// Leaves it open, to be closed by the caller.
  [[nodiscard]] int release() noexcept { return std::exchange(number_, -1); }
  /// Closes it. Keeps errno.
  void reset(int number = -1) noexcept;
  /// Closes it now, for who has to know that all was written. @return false, with errno, if not.
  [[nodiscard]] bool close() noexcept;

 private:
  int number_ = -1;
};

/// Writes all of `bytes`. @return false, with errno, if the system takes no more.
[[nodiscard]] bool write_all(int descriptor, std::span<const std::byte> bytes) noexcept;

}  // namespace fovea
