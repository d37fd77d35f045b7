// Memory of Embedding::data.
#include <sys/mman.h>

#include <cstdint>
#include <new>

#include "fovea/embedding.h"

namespace fovea::detail {

namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::align_val_t kAlignment{64};

constexpr std::size_t round_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

/// Bytes to map: whole huge pages where that adds less than half of one.
std::size_t mapped_bytes(std::size_t bytes) {
  const bool nearly_whole = bytes % kHugePage >= kHugePage / 2;
  return round_up(bytes, nearly_whole ? kHugePage : 4096);
}

/// Maps memory that begins at a huge page: more than that, and then unmaps both ends.
void* map_aligned(std::size_t bytes) {
  void* const begin =
      mmap(nullptr, bytes + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (begin == MAP_FAILED) throw std::bad_alloc();
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  const std::size_t in_front = round_up(address, kHugePage) - address;
  std::byte* const aligned = static_cast<std::byte*>(begin) + in_front;
  if (in_front > 0) (void)munmap(begin, in_front);
  (void)munmap(aligned + bytes, kHugePage - in_front);
  (void)madvise(aligned, bytes, MADV_HUGEPAGE);  // a wish: small pages do as well
  return aligned;
}

}  // namespace

void* allocate_rows(std::size_t bytes) {
  return bytes < kHugePage ? ::operator new(bytes, kAlignment) : map_aligned(mapped_bytes(bytes));
}

void free_rows(void* memory, std::size_t bytes) noexcept {
  if (bytes < kHugePage) {
    ::operator delete(memory, kAlignment);
  } else {
    (void)munmap(memory, mapped_bytes(bytes));
  }
}

}  // namespace fovea::detail
