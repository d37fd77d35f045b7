#include "ranks/byte_sequence.h"

#include <algorithm>

namespace fovea::ranks {

void ByteSequence::append(std::span<std::byte> part) {
  parts_.push_back(part);
  ends_.push_back(size_ += part.size());
}

template <class Copy>
void ByteSequence::for_each_part(std::size_t offset, std::size_t count,
                                 Copy&& copy) const noexcept {
  const std::size_t end = std::min(offset + count, size_);
  auto index = static_cast<std::size_t>(std::ranges::upper_bound(ends_, offset) - ends_.begin());
  for (std::size_t at = offset; at < end; ++index) {
    const std::size_t begin = ends_[index] - parts_[index].size();
    const std::size_t here = std::min(end, ends_[index]) - at;
    copy(parts_[index].subspan(at - begin, here), at - offset);
    at += here;
  }
}

void ByteSequence::read(std::size_t offset, std::span<std::byte> out) const noexcept {
  for_each_part(offset, out.size(), [&](std::span<std::byte> part, std::size_t place) {
    std::ranges::copy(part, out.subspan(place).begin());
  });
}

void ByteSequence::write(std::size_t offset, std::span<const std::byte> bytes) const noexcept {
  for_each_part(offset, bytes.size(), [&](std::span<std::byte> part, std::size_t place) {
    std::ranges::copy(bytes.subspan(place, part.size()), part.begin());
  });
}

}  // namespace fovea::ranks
