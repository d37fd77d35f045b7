#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>
#include <type_traits>

#include "fovea/error.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace fovea::test {

/// Ends a fuzz run: what must hold for every input does not hold.
inline void require(bool condition) {
  if (!condition) std::abort();
}

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Runs `action` and says whether it ended without a Refusal, the only exception that an input may
/// cause; another one ends the run, as does an internal error, which means a bug in Fovea.
template <class Refusal = Error, class Action>
bool accepts(Action&& action) {
  try {
    action();
    return true;
  } catch (const Refusal& refusal) {
    if constexpr (std::is_same_v<Refusal, Error>) require(refusal.code() != ErrorCode::kInternal);
    return false;
  }
}

}  // namespace fovea::test
