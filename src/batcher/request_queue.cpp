// Which requests run together: first come, first served, and whoever fits beside.
#include "batcher/request_queue.h"

#include <algorithm>

namespace fovea::batching {

namespace {

/// Whether one call of the engine can encode both.
bool same_options(const EncodeOptions& a, const EncodeOptions& b) noexcept {
  return a.dtype == b.dtype && a.enforce_eager == b.enforce_eager && a.use_cache == b.use_cache &&
         !a.has_room && !b.has_room;
}

}  // namespace

template <class Take>
Load RequestQueue::choose(Take&& take) const {
  Load sum;
  std::size_t count = 0;
  for (const RequestPtr& one : waiting_) {
    if (count == most_requests()) break;
    const Load& load = one->load;
    const bool fits = sum.items + load.items <= options_.max_batch_items &&
                      sum.rows + load.rows <= options_.max_batch_rows &&
                      same_options(one->how, waiting_.front()->how);
    if (!fits && one != waiting_.front()) continue;
    sum.items += load.items;
    sum.rows += load.rows;
    ++count;
    take(one);
  }
  return sum;
}

bool RequestQueue::has_full_batch() const noexcept {
  std::size_t taken = 0;
  const Load sum = choose([&](const RequestPtr&) { ++taken; });
  return taken < waiting_.size() || sum.items >= options_.max_batch_items ||
         sum.rows >= options_.max_batch_rows;
}

void RequestQueue::remove(const Request& request) noexcept {
  std::erase_if(waiting_, [&](const RequestPtr& one) { return one.get() == &request; });
}

void RequestQueue::take_batch(std::vector<RequestPtr>& batch) {
  batch.clear();
  (void)choose([&](const RequestPtr& one) { batch.push_back(one); });
  auto next = batch.begin();  // ascending
  std::erase_if(waiting_, [&](const RequestPtr& one) {
    if (next == batch.end() || *next != one) return false;
    ++next;
    return true;
  });
}

}  // namespace fovea::batching
