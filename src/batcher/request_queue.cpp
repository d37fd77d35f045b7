// Which requests run together: first come, first served, and whoever fits beside.
#include "batcher/request_queue.h"

#include <algorithm>

namespace fovea::batching {

namespace {

/// Whether one call of the engine can encode both.
bool same_options(const EncodeOptions& a, const EncodeOptions& b) noexcept {
  return a.dtype == b.dtype && a.enforce_eager == b.enforce_eager && a.use_cache == b.use_cache;
}

}  // namespace

template <class Take>
void RequestQueue::choose(Take&& take) const {
  Load sum;
  for (std::size_t i = 0; i < waiting_.size(); ++i) {
    const Load& load = waiting_[i]->load;
    const bool fits = sum.items + load.items <= options_.max_batch_items &&
                      sum.rows + load.rows <= options_.max_batch_rows &&
                      same_options(waiting_[i]->how, waiting_.front()->how);
    if (i > 0 && !fits) continue;
    sum.items += load.items;
    sum.rows += load.rows;
    take(i);
  }
}

bool RequestQueue::has_full_batch() const noexcept {
  std::size_t taken = 0;
  Load sum;
  choose([&](std::size_t i) {
    ++taken;
    sum.items += waiting_[i]->load.items;
    sum.rows += waiting_[i]->load.rows;
  });
  return taken < waiting_.size() || sum.items >= options_.max_batch_items ||
         sum.rows >= options_.max_batch_rows;
}

void RequestQueue::remove(const Request& request) noexcept {
  std::erase_if(waiting_, [&](const RequestPtr& one) { return one.get() == &request; });
}

void RequestQueue::take_batch(std::vector<RequestPtr>& batch) {
  batch.clear();
  choose([&](std::size_t i) { batch.push_back(waiting_[i]); });
  auto next = batch.begin();  // ascending
  std::erase_if(waiting_, [&](const RequestPtr& one) {
    if (next == batch.end() || *next != one) return false;
    ++next;
    return true;
  });
}

}  // namespace fovea::batching
