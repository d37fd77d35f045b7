#include "serve/service/memory_budget.h"

namespace fovea::serve {

bool MemoryBudget::reserve(std::int64_t bytes) noexcept {
  std::int64_t used = used_;
  do {
    if (bytes > capacity_ - used) return false;
  } while (!used_.compare_exchange_weak(used, used + bytes));
  return true;
}

std::shared_ptr<void> MemoryBudget::take(std::int64_t bytes) {
  if (!reserve(bytes)) return nullptr;
  return {this, [bytes](MemoryBudget* budget) { budget->release(bytes); }};
}

}  // namespace fovea::serve
