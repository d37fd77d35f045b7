#pragma once

#include <cstddef>
#include <cstdint>

namespace fovea::cuda {

inline bool is_aligned(const void* pointer, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(pointer) % bytes == 0;
}

}  // namespace fovea::cuda
