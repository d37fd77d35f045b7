#pragma once

#include <stop_token>

#include "core/interrupt.h"
#include "support/expect_error.h"

namespace fovea::test {

/// Expects that `action` ends with Error(kCancelled) on a thread that has been asked to stop.
template <class Action>
void expect_stops(const Action& action) {
  std::stop_source stop;
  stop.request_stop();
  const Interrupt interrupt(stop.get_token(), Interrupt::Clock::time_point::max(), "test");
  const InterruptScope scope(&interrupt);
  expect_error(ErrorCode::kCancelled, "stopped", action);
}

}  // namespace fovea::test
