#include "support/allocations.h"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace fovea::test {
namespace {

std::atomic<std::int64_t> live{0};
std::atomic<std::int64_t> peak{0};
std::atomic<std::int64_t> base{0};

constexpr std::int64_t kNever = INT64_MAX / 2;
std::atomic<std::int64_t> until_failure{kNever};  // 1: the next one fails; 0 and below: it has
std::atomic<bool> fails_forever{false};

void* allocate(std::size_t bytes, std::size_t alignment = 0) noexcept {
  const std::int64_t left = until_failure.fetch_sub(1);
  if (left == 1 || (left < 1 && fails_forever)) return nullptr;
  if (bytes == 0) bytes = 1;
  void* const memory = alignment == 0
                           ? std::malloc(bytes)
                           : std::aligned_alloc(alignment, (bytes / alignment + 1) * alignment);
  const std::int64_t now = live += static_cast<std::int64_t>(malloc_usable_size(memory));
  for (std::int64_t most = peak; now > most && !peak.compare_exchange_weak(most, now);) {
  }
  return memory;
}

void* allocate_or_throw(std::size_t bytes, std::size_t alignment = 0) {
  void* const memory = allocate(bytes, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void release(void* memory) noexcept {
  live -= static_cast<std::int64_t>(malloc_usable_size(memory));
  std::free(memory);
}

}  // namespace

void begin_peak() noexcept {
  base = live.load();
  peak = live.load();
}

std::int64_t peak_bytes() noexcept { return peak - base; }

FailingAllocation::FailingAllocation(std::int64_t nth, Lasts lasts) noexcept {
  fails_forever = lasts == Lasts::kForever;
  until_failure = nth;
}

FailingAllocation::~FailingAllocation() {
  fails_forever = false;
  until_failure = kNever;
}

bool FailingAllocation::happened() const noexcept { return until_failure < 1; }

}  // namespace fovea::test

void* operator new(std::size_t bytes) { return fovea::test::allocate_or_throw(bytes); }
void* operator new[](std::size_t bytes) { return fovea::test::allocate_or_throw(bytes); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return fovea::test::allocate_or_throw(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return fovea::test::allocate(bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return fovea::test::allocate(bytes);
}
void operator delete(void* memory) noexcept { fovea::test::release(memory); }
void operator delete[](void* memory) noexcept { fovea::test::release(memory); }
void operator delete(void* memory, std::size_t) noexcept { fovea::test::release(memory); }
void operator delete[](void* memory, std::size_t) noexcept { fovea::test::release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { fovea::test::release(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { fovea::test::release(memory); }
void operator delete[](void* memory, const std::nothrow_t&) noexcept {
  fovea::test::release(memory);
}
