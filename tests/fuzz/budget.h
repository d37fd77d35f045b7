#pragma once

#include <cstddef>
#include <cstdint>

#include "fuzz.h"
#include "support/allocations.h"

namespace fovea::test {

/// Runs `action` and ends the fuzz run if it takes more memory than bytes of strangers may: some
/// for each of them, and what a message or a block of escaped strings takes.
template <class Action>
void within_budget(std::size_t bytes, Action&& action) {
  constexpr std::int64_t kFixed = std::int64_t{128} << 10;
  constexpr std::int64_t kPerByte = 100;
  begin_peak();
  action();
  require(peak_bytes() <= kFixed + kPerByte * static_cast<std::int64_t>(bytes));
}

}  // namespace fovea::test
