#pragma once

#include <string_view>

#include "core/interrupt.h"
#include "fovea/call_bounds.h"

namespace fovea {

/// Puts the calling thread under the bounds of a call of the library until the call returns. A call
/// that other calls of the library consist of, verify() for example, bounds them too.
class CallScope {
 public:
  /// @param call for messages; must outlive the scope.
  /// @throws as check_interrupt: a call may be over before it begins.
  CallScope(const CallBounds& bounds, std::string_view call)
      : interrupt_(bounds.stop, bounds.deadline, call, current_interrupt()), scope_(&interrupt_) {
    check_interrupt();
  }

 private:
  Interrupt interrupt_;
  InterruptScope scope_;
};

}  // namespace fovea
