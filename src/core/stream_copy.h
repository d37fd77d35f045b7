#pragma once

#include <cstddef>

namespace fovea {

/// Copies `bytes` bytes past the caches of this processor: for memory that a device reads next. A
/// device that finds lines modified in caches gets them at a fraction of the rate of memory. The
/// ranges must not overlap; any alignment. Everything is in memory when the call returns.
void stream_copy(void* to, const void* from, std::size_t bytes) noexcept;

}  // namespace fovea
