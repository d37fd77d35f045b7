#pragma once

#include <nanobind/nanobind.h>

#include <functional>
#include <memory>
#include <stop_token>

namespace fovea::python {

struct Calls;

/// A call from Python, from its beginning to its end, with the GIL at both. When the interpreter is
/// ending, a thread that comes here or would take the GIL again waits for the end of the process
/// instead, as from Python 3.14 on: before, the interpreter ends such a thread by unwinding its
/// stack, and that ends the process with an abort.
class Call {
 public:
  Call();
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  /// Is stopped by end_calls().
  [[nodiscard]] std::stop_token stop() const;

 private:
  friend class WithoutGil;
  std::shared_ptr<Calls> calls_;
};

/// Lets go of the GIL while it lives, within a call.
class WithoutGil {
 public:
  explicit WithoutGil(const Call& call);
  ~WithoutGil();
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  Calls& calls_;
  PyThreadState* thread_;
};

/// The GIL, for any thread and at any time, also where it has it already. There is none when the
/// interpreter is ending, but for the thread that ends it, which waits for those that have it.
class AnyGil {
 public:
  AnyGil();
  ~AnyGil();
  AnyGil(const AnyGil&) = delete;
  AnyGil& operator=(const AnyGil&) = delete;

  [[nodiscard]] explicit operator bool() const noexcept { return calls_ != nullptr; }

 private:
  std::shared_ptr<Calls> calls_;
  PyGILState_STATE state_{};
};

/// Stops the calls of other threads, and returns when none is left, or after 10 s; needs the GIL.
/// The calling thread is the one that ends the interpreter.
void end_calls();

/// Runs `work` without the GIL, and returns when it has ended; needs the GIL.
///
/// On the main thread of Python, `work` runs on a thread of its own while this one looks for
/// signals: Python calls signal handlers there only, and between two steps of the interpreter, so
/// that a long call would hold up Ctrl-C until its end. If a handler raises, `work` is stopped
/// through its stop_token, and what the handler raised is thrown. On other threads it is stopped by
/// end_calls().
/// @throws what `work` throws.
void run_interruptibly(const Call& call, const std::function<void(std::stop_token)>& work);

}  // namespace fovea::python
