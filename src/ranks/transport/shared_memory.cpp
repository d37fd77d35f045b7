// Memory that processes share by its descriptor alone.
#include "ranks/transport/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "core/check.h"
#include "core/file.h"

namespace fovea::ranks {

namespace {

std::size_t size_for(int size) noexcept { return 2 * static_cast<std::size_t>(size) * kPieceBytes; }

}  // namespace

FileDescriptor SharedMemory::create(int size) {
  FileDescriptor memory(memfd_create("fovea-ranks", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  FOVEA_CHECK(memory.is_open(), kIo, "cannot make shared memory: ", system_reason());
  // Allocated now: memory that is missing later ends a process by a signal.
  // In pieces: a signal undoes what has not ended, and a timer may send one every few milliseconds.
  const std::size_t bytes = size_for(size);
  for (std::size_t at = 0; at < bytes;) {
    const int failure = posix_fallocate(memory.get(), static_cast<off_t>(at), kPieceBytes);
    if (failure == EINTR) continue;
    FOVEA_CHECK(failure == 0, kOutOfMemory, "cannot take ", bytes, " bytes of shared memory for ",
                size, " ranks: ", std::generic_category().message(failure));
    at += kPieceBytes;
  }
  FOVEA_CHECK(fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0, kIo,
              "cannot seal shared memory: ", system_reason());
  return memory;
}

SharedMemory::SharedMemory(const FileDescriptor& memory, int size) {
  const std::size_t bytes = size_for(size);
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory.get(), 0);
  FOVEA_CHECK(at != MAP_FAILED, kOutOfMemory, "cannot map ", bytes,
              " bytes of shared memory: ", system_reason());
  bytes_ = {static_cast<std::byte*>(at), bytes};
}

SharedMemory::~SharedMemory() {
  if (is_mapped()) (void)munmap(bytes_.data(), bytes_.size());
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

std::span<std::byte> SharedMemory::piece(std::uint64_t round, int rank) const noexcept {
  const std::size_t half = bytes_.size() / 2;
  return bytes_.subspan(round % 2 * half + static_cast<std::size_t>(rank) * kPieceBytes,
                        kPieceBytes);
}

}  // namespace fovea::ranks
