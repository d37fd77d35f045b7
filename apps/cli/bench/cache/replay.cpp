// A scheduler without a model: windows of prompts against an encoder cache.
#include "bench/cache/replay.h"

#include <algorithm>
#include <deque>
#include <list>
#include <set>
#include <utility>

#include "fovea/encoder_cache.h"

namespace fovea::cli {
namespace {

class Replay {
 public:
  Replay(const Trace& trace, const ReplaySettings& settings)
      : settings_(settings), cache_(capacity(trace)) {
    for (std::size_t i = 0; i < trace.size(); ++i)
      waiting_.push_back({trace[i].step, &trace[i], i});
    result_.capacity = cache_.capacity();
    for (const TraceRequest& request : trace) result_.items += std::ssize(request.items);
  }

  ReplayResult run() {
    for (; !waiting_.empty() || !running_.empty(); ++result_.steps) step();
    result_.hits = result_.items - std::ssize(encoded_);
    return result_;
  }

 private:
  struct Arrival {
    std::int64_t step = 0;
    const TraceRequest* request = nullptr;
    std::size_t number = 0;
  };

  /// A request on its way through the host engine.
  struct Running {
    Arrival from;
    CacheRequest request;
    std::int64_t length = 0;
    std::int64_t computed = 0;
  };

  /// The placeholder of an item at `offset`. Scattered storage has a slot for every position.
  [[nodiscard]] PlaceholderRange placeholder_of(const TraceItem& item, std::int64_t offset) const {
    const std::vector<bool> mask = placeholder_mask(item, settings_.seconds);
    if (settings_.storage == Storage::kScattered || item.patches == 0) {
      return {offset, std::ssize(mask)};
    }
    return {offset, std::ssize(mask), mask};
  }

  [[nodiscard]] Running make_running(const Arrival& arrival) const {
    Running running{.from = arrival, .request = {std::to_string(arrival.number), {}}};
    for (const TraceItem& item : arrival.request->items) {
      running.length += item.text;
      running.request.items.push_back({item.key, placeholder_of(item, running.length)});
      running.length = running.request.items.back().placeholder.end();
    }
    running.length += arrival.request->text;
    return running;
  }

  /// That of a host engine which has to hold the largest item.
  [[nodiscard]] std::int64_t capacity(const Trace& trace) const {
    std::int64_t largest = 1;
    for (const TraceRequest& request : trace) {
      for (const TraceItem& item : request.items) {
        largest = std::max(largest, placeholder_of(item, 0).num_embeds());
      }
    }
    const CacheBudgets budgets = cache_budgets({.max_num_batched_tokens = settings_.chunk_size,
                                                .max_item_rows = largest,
                                                .encoder_cache_size = settings_.cache_size});
    return budgets.capacity_rows;
  }

  void step() {
    while (!waiting_.empty() && waiting_.front().step <= result_.steps &&
           std::ssize(running_) < settings_.max_running) {
      running_.push_back(make_running(waiting_.front()));
      waiting_.pop_front();
    }
    std::int64_t tokens = settings_.chunk_size;
    std::int64_t rows = std::max(settings_.chunk_size, cache_.capacity());
    std::vector<WindowPlan> plans;
    for (Running& running : running_) {
      if (tokens == 0) break;
      plans.push_back(advance(running, tokens, rows));
      tokens -= plans.back().length;
      rows = plans.back().compute_budget;
    }
    count_slots();
    for (auto running = running_.begin(); running != running_.end();) {
      release_consumed(cache_, running->request, running->computed);
      const bool is_done = running->computed == running->length;
      if (is_done) cache_.release_all(running->request);
      running = is_done ? running_.erase(running) : std::next(running);
    }
    if (find_deadlock(cache_, plans)) preempt();
  }

  WindowPlan advance(Running& running, std::int64_t tokens, std::int64_t rows) {
    const std::int64_t end = std::min(running.computed + tokens, running.length);
    WindowPlan plan =
        plan_window(cache_, running.request, {running.computed, end}, {.compute_budget = rows});
    if (plan.length == 0) {
      if (&running != &running_.front()) cache_.release_all(running.request);
      return plan;
    }
    for (const std::size_t item : plan.local) encode(running, item);
    for (const std::size_t item : plan.duplicates) cache_.allocate(running.request, item);
    running.computed += plan.length;
    return plan;
  }

  void encode(Running& running, std::size_t item) {
    cache_.allocate(running.request, item);
    ++result_.encoded;
    encoded_.emplace(running.from.number, item);
  }

  void count_slots() {
    result_.evictions += std::ssize(cache_.drain_evicted());
    result_.peak_held = std::max(result_.peak_held, cache_.capacity() - cache_.num_freeable());
    result_.peak_used = std::max(result_.peak_used, cache_.capacity() - cache_.num_free());
  }

  /// The youngest request begins anew when there is room.
  void preempt() {
    Running& last = running_.back();
    cache_.release_all(last.request);
    ++result_.preemptions;
    waiting_.push_front(last.from);
    running_.pop_back();
  }

  const ReplaySettings& settings_;
  EncoderCache cache_;
  std::deque<Arrival> waiting_;
  std::list<Running> running_;
  ReplayResult result_;
  std::set<std::pair<std::size_t, std::size_t>> encoded_;  // items that their request had encoded
};

}  // namespace

double ReplayResult::hit_rate() const {
  return items == 0 ? 0 : static_cast<double>(hits) / static_cast<double>(items);
}

ReplayResult replay(const Trace& trace, const ReplaySettings& settings) {
  return Replay(trace, settings).run();
}

}  // namespace fovea::cli
