#include "signals.h"

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>
#include <utility>

namespace nb = nanobind;

namespace fovea::python {

/// The calls of a process.
struct Calls {
  const pid_t process = getpid();
  std::stop_source stop;
  std::mutex mutex;  // of the members below
  std::condition_variable changed;
  int running = 0;
  bool is_over = false;   ///< the interpreter is ending
  std::thread::id ender;  ///< who ends it

  /// Under the mutex: whether the current thread may go on.
  [[nodiscard]] bool may_go_on() const { return !is_over || ender == std::this_thread::get_id(); }
  void leave() {
    --running;
    changed.notify_all();
  }
};

namespace {

/// Needs the GIL until the first call of the process. A forked one has none of the calls of the
/// other.
std::shared_ptr<Calls> calls_of_process() {
  static auto calls = std::make_shared<Calls>();
  if (calls->process != getpid()) calls = std::make_shared<Calls>();
  return calls;
}

[[noreturn]] void wait_for_the_end() {
  while (true) std::this_thread::sleep_for(std::chrono::hours(1));
}

/// How long a signal may stay unseen.
constexpr std::chrono::milliseconds kLookEvery{50};

/// How long a process waits at its end for calls, which may be in a function of the caller that
/// never returns.
constexpr std::chrono::seconds kMostWait{10};

bool on_main_thread() {
  const nb::module_ threading = nb::module_::import_("threading");
  return threading.attr("current_thread")().is(threading.attr("main_thread")());
}

}  // namespace

Call::Call() : calls_(calls_of_process()) {
  std::unique_lock lock(calls_->mutex);
  if (calls_->may_go_on()) {
    ++calls_->running;
    return;
  }
  lock.unlock();
  PyEval_SaveThread();
  wait_for_the_end();
}

Call::~Call() {
  const std::lock_guard lock(calls_->mutex);
  calls_->leave();
}

std::stop_token Call::stop() const { return calls_->stop.get_token(); }

WithoutGil::WithoutGil(const Call& call) : calls_(*call.calls_), thread_(PyEval_SaveThread()) {}

WithoutGil::~WithoutGil() {
  std::unique_lock lock(calls_.mutex);
  if (!calls_.may_go_on()) {
    calls_.leave();
    lock.unlock();
    wait_for_the_end();
  }
  lock.unlock();
  PyEval_RestoreThread(thread_);  // end_calls() waits for this call
}

AnyGil::AnyGil() {
  if (!nb::is_alive()) return;
  std::shared_ptr<Calls> calls = calls_of_process();
  {
    const std::lock_guard lock(calls->mutex);
    if (!calls->may_go_on()) return;
    ++calls->running;
  }
  state_ = PyGILState_Ensure();  // end_calls() waits for this
  calls_ = std::move(calls);
}

AnyGil::~AnyGil() {
  if (!calls_) return;
  PyGILState_Release(state_);
  const std::lock_guard lock(calls_->mutex);
  calls_->leave();
}

void end_calls() {
  const std::shared_ptr<Calls> calls = calls_of_process();
  const nb::gil_scoped_release release;
  {
    const std::lock_guard lock(calls->mutex);
    calls->is_over = true;
    calls->ender = std::this_thread::get_id();
  }
  calls->stop.request_stop();
  std::unique_lock lock(calls->mutex);
  calls->changed.wait_for(lock, kMostWait, [&] { return calls->running == 0; });
}

void run_interruptibly(const Call& call, const std::function<void(std::stop_token)>& work) {
  if (!on_main_thread()) {
    const WithoutGil release(call);
    work(call.stop());
    return;
  }
  std::stop_source stop;
  std::packaged_task<void()> task([&] { work(stop.get_token()); });
  std::future<void> done = task.get_future();
  bool raised = false;
  {
    const nb::gil_scoped_release release;
    const std::jthread worker(std::move(task));
    while (!raised && done.wait_for(kLookEvery) == std::future_status::timeout) {
      const nb::gil_scoped_acquire acquire;
      raised = PyErr_CheckSignals() != 0;
      if (raised) stop.request_stop();
    }
  }  // the worker has ended
  if (raised) throw nb::python_error();
  done.get();
}

}  // namespace fovea::python
