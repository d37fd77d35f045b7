// The thread that starts decoder processes.
#include "media/process/process_starter.h"

#include <condition_variable>
#include <deque>
#include <future>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include "core/blocked_signals.h"

namespace fovea::media {

struct ProcessStarter::Impl {
  using Start = std::packaged_task<ChildProcess()>;

  void run(const std::stop_token& stop) {
    const BlockedSignals none;
    std::unique_lock lock(mutex);
    while (changed.wait(lock, stop, [&] { return !waiting.empty(); })) {
      Start next = std::move(waiting.front());
      waiting.pop_front();
      lock.unlock();
      next();
      lock.lock();
    }
  }

  std::mutex mutex;
  std::condition_variable_any changed;
  std::deque<Start> waiting;
  std::jthread thread{
      [this](const std::stop_token& stop) { run(stop); }};  // last: it uses the rest
};

ProcessStarter::ProcessStarter() : impl_(std::make_unique<Impl>()) {}
ProcessStarter::~ProcessStarter() = default;

ChildProcess ProcessStarter::start(const std::string& program,
                                   const std::vector<std::string>& arguments) {
  Impl::Start start([&] { return ChildProcess(program, arguments); });
  std::future<ChildProcess> child = start.get_future();
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->waiting.push_back(std::move(start));
  }
  impl_->changed.notify_one();
  return child.get();
}

}  // namespace fovea::media
