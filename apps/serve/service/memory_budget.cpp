#include "serve/service/memory_budget.h"

namespace fovea::serve {

std::shared_ptr<void> MemoryBudget::take(std::int64_t bytes) {
  std::int64_t used = used_;
  do {
    if (bytes > capacity_ - used) return nullptr;
  } while (!used_.compare_exchange_weak(used, used + bytes));
  return {this, [bytes](MemoryBudget* budget) { budget->used_ -= bytes; }};
}

}  // namespace fovea::serve
