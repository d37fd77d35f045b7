#include "signals.h"

#include <nanobind/nanobind.h>

#include <chrono>
#include <future>
#include <thread>
#include <utility>

namespace nb = nanobind;

namespace fovea::python {
namespace {

/// How long a signal may stay unseen.
constexpr std::chrono::milliseconds kLookEvery{50};

bool on_main_thread() {
  const nb::module_ threading = nb::module_::import_("threading");
  return threading.attr("current_thread")().is(threading.attr("main_thread")());
}

}  // namespace

void run_interruptibly(const std::function<void(std::stop_token)>& work) {
  if (!on_main_thread()) {
    const nb::gil_scoped_release release;
    work({});
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
