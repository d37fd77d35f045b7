#pragma once

#include <cstddef>

#include "fovea/tower/device/arena.h"

namespace fovea::test {

/// Where the next view of the arena would begin.
[[nodiscard]] inline std::byte* next_free(Arena& arena) {
  const Arena::Scope scope(arena);
  return arena.tensor(DType::kU8, {1}).data;
}

}  // namespace fovea::test
