#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace fovea::ranks {

/// Pieces of memory that lie anywhere, as one sequence of bytes. Owns nothing.
class ByteSequence {
 public:
  void append(std::span<std::byte> part);
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  /// Copies bytes from `offset` on into `out`, as far as there are any.
  void read(std::size_t offset, std::span<std::byte> out) const noexcept;
  /// Copies `bytes` to `offset` and after, as far as there is room.
  void write(std::size_t offset, std::span<const std::byte> bytes) const noexcept;

 private:
  /// Calls copy(memory, place) for every part of the sequence in [offset, offset + count), which
  /// begins `place` bytes behind `offset`.
  template <class Copy>
  void for_each_part(std::size_t offset, std::size_t count, Copy&& copy) const noexcept;

  std::vector<std::span<std::byte>> parts_;
  std::vector<std::size_t> ends_;  // of the parts in the sequence
  std::size_t size_ = 0;
};

}  // namespace fovea::ranks
