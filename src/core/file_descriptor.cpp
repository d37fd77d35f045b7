#include "core/file_descriptor.h"

#include <unistd.h>

#include <cerrno>

namespace fovea {

void FileDescriptor::reset(int number) noexcept {
  const int reason = errno;
  if (is_open()) (void)::close(number_);
  number_ = number;
  errno = reason;
}

bool FileDescriptor::close() noexcept { return ::close(release()) == 0 || errno == EINTR; }

bool write_all(int descriptor, std::span<const std::byte> bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return true;
}

}  // namespace fovea
