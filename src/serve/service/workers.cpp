#include "serve/service/workers.h"

#include <string>
#include <system_error>
#include <utility>

#include "fovea/error.h"

namespace fovea::serve {

Workers::Workers(int count) {
  threads_.reserve(static_cast<std::size_t>(count));
  try {
    for (int i = 0; i < count; ++i) threads_.emplace_back([this] { work(); });
  } catch (const std::system_error& error) {
    end();  // those that run are waited for
    throw Error(ErrorCode::kIo, "cannot start thread " + std::to_string(threads_.size() + 1) +
                                    " of " + std::to_string(count) + ": " + error.code().message());
  } catch (...) {
    end();
    throw;
  }
}

Workers::~Workers() { end(); }

void Workers::end() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  wakes_.notify_all();
}

void Workers::run(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  wakes_.notify_one();
}

void Workers::wait_idle() {
  std::unique_lock lock(mutex_);
  is_idle_.wait(lock, [&] { return running_ == 0 && tasks_.empty(); });
}

void Workers::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wakes_.wait(lock, [&] { return ends_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    ++running_;
    lock.unlock();
    task();
    task = nullptr;  // what it holds goes without the lock
    lock.lock();
    if (--running_ == 0 && tasks_.empty()) is_idle_.notify_all();
  }
}

}  // namespace fovea::serve
