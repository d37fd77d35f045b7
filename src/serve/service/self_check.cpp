#include "serve/service/self_check.h"

#include <utility>

namespace fovea::serve {

SelfCheck::SelfCheck(std::function<void(const std::stop_token&)> attempt)
    : attempt_(std::move(attempt)), worker_(1) {}

SelfCheck::~SelfCheck() { ends_.request_stop(); }

void SelfCheck::ask(std::function<void(bool works)> done) {
  const std::lock_guard lock(mutex_);
  const bool is_first = waiting_.empty();
  waiting_.push_back(std::move(done));
  if (!is_first) return;
  try {
    worker_.run([this] { run(); });
  } catch (...) {
    waiting_.pop_back();
    throw;
  }
}

void SelfCheck::run() {
  bool works = true;
  try {
    attempt_(ends_.get_token());
  } catch (...) {  // NOLINT: whatever the reason, it does not work
    works = false;
  }
  std::vector<std::function<void(bool)>> asked;
  {
    const std::lock_guard lock(mutex_);
    asked.swap(waiting_);
  }
  for (const std::function<void(bool)>& done : asked) done(works);
}

}  // namespace fovea::serve
