// Memory of Embedding::data.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include "fovea/embedding.h"

namespace fovea {

namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;
constexpr std::align_val_t kAlignment{64};

constexpr std::size_t round_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

/// Of this system: 4 KB on x86, up to 64 KB on ARM.
std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

/// Bytes to map: whole huge pages where that adds less than half of one.
std::size_t mapped_bytes(std::size_t bytes) {
  const bool nearly_whole = bytes % kHugePage >= kHugePage / 2;
  return round_up(bytes, nearly_whole ? kHugePage : page_bytes());
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

/// Not initialised.
std::byte* allocate(std::size_t bytes) {
  if (bytes > std::numeric_limits<std::ptrdiff_t>::max()) throw std::bad_alloc();
  return static_cast<std::byte*>(bytes < kHugePage ? ::operator new(bytes, kAlignment)
                                                   : map_aligned(mapped_bytes(bytes)));
}

void release(std::byte* memory, std::size_t bytes) noexcept {
  if (bytes < kHugePage) {
    ::operator delete(memory, kAlignment);
  } else {
    (void)munmap(memory, mapped_bytes(bytes));
  }
}

}  // namespace

RowBytes::RowBytes(std::size_t size) { resize(size); }

RowBytes::RowBytes(std::span<const std::byte> bytes) : RowBytes(bytes.size()) {
  if (size_ > 0) std::memcpy(data_, bytes.data(), size_);
}

RowBytes::RowBytes(const RowBytes& other) : RowBytes(std::span(other.data_, other.size_)) {}

RowBytes::RowBytes(RowBytes&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      capacity_(std::exchange(other.capacity_, 0)) {}

RowBytes& RowBytes::operator=(RowBytes other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(capacity_, other.capacity_);
  return *this;
}

RowBytes::~RowBytes() {
  if (data_ != nullptr) release(data_, capacity_);
}

void RowBytes::resize(std::size_t size) {
  if (size > capacity_) {
    std::byte* const grown = allocate(size);
    if (size_ > 0) std::memcpy(grown, data_, size_);
    if (data_ != nullptr) release(data_, capacity_);
    data_ = grown;
    capacity_ = size;
  }
  size_ = size;
}

}  // namespace fovea
