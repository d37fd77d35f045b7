// Which items a window of a prompt needs: the scheduler's side of the encoder cache.
#include <algorithm>
#include <set>

#include "core/boundary.h"
#include "fovea/encoder_cache.h"

namespace fovea {

namespace {

/// Positions of `placeholder`, counted from its offset, that lie in the window.
IndexRange positions_in(const PlaceholderRange& placeholder, IndexRange window) {
  const std::int64_t begin = std::max(window.begin - placeholder.offset(), std::int64_t{0});
  const std::int64_t end = std::min(window.end - placeholder.offset(), placeholder.length());
  return {begin, std::max(begin, end)};
}

/// The walk over the items of a request.
class Planner {
 public:
  Planner(EncoderCache& cache, const CacheRequest& request, IndexRange window,
          const WindowLimits& limits)
      : cache_(cache), request_(request), window_(window), limits_(limits) {
    plan_.length = window.size();
    plan_.compute_budget = limits.compute_budget;
  }

  [[nodiscard]] WindowPlan run() {
    if (plan_.length == 0) return plan_;
    for (std::size_t item = 0; item < request_.items.size(); ++item) {
      if (!add(item)) break;
    }
    return std::move(plan_);
  }

 private:
  /// @return whether the window may reach behind the item.
  bool add(std::size_t item) {
    const auto& [key, placeholder] = request_.items[item];
    if (placeholder.offset() >= window_end() + limits_.look_ahead) return false;
    if (placeholder.end() <= window_.begin || seen_.contains(key)) return true;
    if (cache_.lookup(request_, item)) return true;
    const bool is_split = window_.begin < placeholder.offset() && window_end() < placeholder.end();
    if (limits_.no_split && is_split) {
      stop_before(placeholder);
      return false;
    }
    const IndexRange positions = positions_in(placeholder, {window_.begin, window_end()});
    if (placeholder.embed_range(positions).empty()) return true;
    return encode(item);
  }

  bool encode(std::size_t item) {
    const auto& [key, placeholder] = request_.items[item];
    const std::int64_t rows = placeholder.num_embeds();
    if (!cache_.make_room(request_, item, plan_.compute_budget, promised_)) {
      if (rows <= plan_.compute_budget) plan_.rows_waited_for = rows;
      stop_before(placeholder);
      return false;
    }
    seen_.insert(key);
    promised_ += rows;
    if (limits_.is_remote && call_back(limits_.is_remote, key)) {
      plan_.remote.push_back(item);
    } else {
      plan_.compute_budget -= rows;
      plan_.local.push_back(item);
    }
    return true;
  }

  void stop_before(const PlaceholderRange& placeholder) {
    plan_.length =
        std::max(placeholder.offset() - window_.begin - limits_.look_ahead, std::int64_t{0});
  }

  [[nodiscard]] std::int64_t window_end() const { return window_.begin + plan_.length; }

  EncoderCache& cache_;
  const CacheRequest& request_;
  IndexRange window_;
  const WindowLimits& limits_;
  WindowPlan plan_;
  std::set<std::string> seen_;  // keys that this plan encodes or fetches
  std::int64_t promised_ = 0;   // rows of those
};

}  // namespace

WindowPlan plan_window(EncoderCache& cache, const CacheRequest& request, IndexRange window,
                       const WindowLimits& limits) try {
  return Planner(cache, request, window, limits).run();
} catch (...) {
  rethrow_as_error();
}

void release_consumed(EncoderCache& cache, const CacheRequest& request, std::int64_t computed,
                      std::int64_t look_ahead) try {
  for (std::size_t item = 0; item < request.items.size(); ++item) {
    if (request.items[item].placeholder.end() <= computed - look_ahead)
      cache.release(request, item);
  }
} catch (...) {
  rethrow_as_error();
}

std::optional<CacheDeadlock> find_deadlock(const EncoderCache& cache,
                                           std::span<const WindowPlan> plans) {
  std::int64_t needed = 0;
  for (const WindowPlan& plan : plans) {
    if (plan.length > 0) return std::nullopt;
    if (plan.rows_waited_for == 0) continue;
    needed = needed == 0 ? plan.rows_waited_for : std::min(needed, plan.rows_waited_for);
  }
  if (needed == 0) return std::nullopt;
  return CacheDeadlock{.rows_needed = needed, .rows_freeable = cache.num_freeable()};
}

}  // namespace fovea
