#pragma once

#include <functional>
#include <stop_token>

namespace fovea::python {

/// Runs `work` without the GIL, and returns when it has ended; needs the GIL.
///
/// On the main thread of Python, `work` runs on a thread of its own while this one looks for
/// signals: Python calls signal handlers there only, and between two steps of the interpreter, so
/// that a long call would hold up Ctrl-C until its end. If a handler raises, `work` is stopped
/// through its stop_token, and what the handler raised is thrown.
/// @throws what `work` throws.
void run_interruptibly(const std::function<void(std::stop_token)>& work);

}  // namespace fovea::python
