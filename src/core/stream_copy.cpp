#include "core/stream_copy.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace fovea {

#if defined(__SSE2__)

void stream_copy(void* to, const void* from, std::size_t bytes) noexcept {
  constexpr std::size_t kLine = 64;  // bytes of a cache line
  constexpr std::size_t kVector = sizeof(__m128i);
  auto* out = static_cast<std::byte*>(to);
  const auto* in = static_cast<const std::byte*>(from);
  const std::size_t misaligned = reinterpret_cast<std::uintptr_t>(out) % kLine;
  const std::size_t head = std::min(bytes, (kLine - misaligned) % kLine);
  if (head > 0) std::memcpy(out, in, head);
  std::size_t at = head;
  for (; at + kLine <= bytes; at += kLine) {
    for (std::size_t i = at; i < at + kLine; i += kVector) {
      const __m128i piece = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i));
      _mm_stream_si128(reinterpret_cast<__m128i*>(out + i), piece);
    }
  }
  if (at < bytes) std::memcpy(out + at, in + at, bytes - at);
  _mm_sfence();  // nothing else orders non-temporal stores
}

#else

void stream_copy(void* to, const void* from, std::size_t bytes) noexcept {
  if (bytes > 0) std::memcpy(to, from, bytes);
}

#endif

}  // namespace fovea
