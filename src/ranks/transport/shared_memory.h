#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/file_descriptor.h"

namespace fovea::ranks {

/// Most bytes of one rank that travel at once; larger gathers take several rounds.
inline constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

/// Memory of all ranks of a host with a piece for each, twice: rounds use the halves in turn. A
/// rank that writes its piece of one round knows that all have come to the round before, so all
/// have read what the half held.
class SharedMemory {
 public:
  /// New memory for `size` ranks, without a name, whose size no process can change. It is freed
  /// when no process has it any more.
  /// @throws Error(kOutOfMemory), Error(kIo).
  [[nodiscard]] static FileDescriptor create(int size);

  SharedMemory() = default;
  /// Maps memory made by create(). @throws Error(kOutOfMemory).
  SharedMemory(const FileDescriptor& memory, int size);
  ~SharedMemory();
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;

  [[nodiscard]] bool is_mapped() const noexcept { return !bytes_.empty(); }
  /// The memory for a rank's piece of a round.
  [[nodiscard]] std::span<std::byte> piece(std::uint64_t round, int rank) const noexcept;

 private:
  std::span<std::byte> bytes_;
};

}  // namespace fovea::ranks
