#pragma once

#include <cstddef>

namespace fovea {

/// Copies `bytes` bytes with non-temporal stores, which bypass the caches: for memory that a device
/// reads next. A device reads cache lines that the CPU has modified and not yet written back at a
/// fraction of the rate of memory. The ranges must not overlap; any alignment. All stores are
/// complete when the call returns.
void stream_copy(void* to, const void* from, std::size_t bytes) noexcept;

}  // namespace fovea
