#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <stdexcept>
#include <string>
#include <string_view>

namespace fovea::test {

/// A regular file without a place on a disk, for functions that take a path.
class MemoryFile {
 public:
  MemoryFile() : descriptor_(::memfd_create("fovea-test", MFD_CLOEXEC)) {
    if (descriptor_ < 0) throw std::runtime_error("memfd_create failed");
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  /// Replaces the content.
  void write(std::string_view content) const {
    const bool written = ::ftruncate(descriptor_, 0) == 0 &&
                         ::pwrite(descriptor_, content.data(), content.size(), 0) ==
                             static_cast<ssize_t>(content.size());
    if (!written) throw std::runtime_error("cannot write a memory file");
  }
  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

}  // namespace fovea::test
