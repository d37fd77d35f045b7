// Which items a window of a prompt needs: the scheduler's side of the encoder cache.
#include <algorithm>
#include <limits>
#include <unordered_map>

#include "core/boundary.h"
#include "core/check.h"
#include "fovea/encoder_cache.h"

namespace fovea {

namespace {

/// Positions of `placeholder`, counted from its offset, that lie in the window.
IndexRange positions_in(const PlaceholderRange& placeholder, IndexRange window) {
  const std::int64_t begin = std::max(window.begin - placeholder.offset(), std::int64_t{0});
  const std::int64_t end = std::min(window.end - placeholder.offset(), placeholder.length());
  return {begin, std::max(begin, end)};
}

void check_window(const CacheRequest& request, IndexRange window, std::int64_t look_ahead) {
  FOVEA_CHECK(0 <= window.begin && window.begin <= window.end && 0 <= look_ahead &&
                  look_ahead <= std::numeric_limits<std::int64_t>::max() - window.end,
              kInvalidArgument, "request ", request.id, ": positions ", window.begin, " to ",
              window.end, " with ", look_ahead, " behind them are no window");
}

/// The walk over the items of a request. The order of the questions is that of the reference: an
/// item that must not be split is left out before anybody looks whether its rows are there.
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
    if (limits_.num_tokens) keep_from_end(*limits_.num_tokens);
    return std::move(plan_);
  }

 private:
  /// @return whether the window may reach behind the item.
  bool add(std::size_t item) {
    const auto& [key, placeholder] = request_.items[item];
    if (placeholder.offset() >= read_end()) return false;
    if (placeholder.end() <= window_.begin) return true;
    const bool is_split = window_.begin <= placeholder.offset() && window_.end < placeholder.end();
    if (limits_.no_split && is_split) {
      stop_at(placeholder.offset() - limits_.look_ahead);
      return false;
    }
    const std::int64_t rows = placeholder.num_embeds();
    if (const auto planned = planned_.find(key); planned != planned_.end()) {
      if (planned->second != rows) return conflict(item);
      plan_.duplicates.push_back(item);
      return true;
    }
    if (const auto cached = cache_.find_rows(key)) {
      if (*cached != rows) return conflict(item);
      cache_.lookup(request_, item);
      return true;
    }
    if (!cache_.make_room(request_, item, plan_.compute_budget, promised_)) {
      if (rows <= plan_.compute_budget) plan_.rows_waited_for = rows;
      stop_at(placeholder.offset());
      return false;
    }
    const IndexRange positions = positions_in(placeholder, {window_.begin, read_end()});
    if (!placeholder.embed_range(positions).empty()) encode(item, rows);
    return true;
  }

  void encode(std::size_t item, std::int64_t rows) {
    const std::string& key = request_.items[item].key;
    planned_.emplace(key, rows);
    promised_ += rows;
    if (limits_.is_remote && call_back(limits_.is_remote, key)) {
      plan_.remote.push_back(item);
    } else {
      plan_.compute_budget -= rows;
      plan_.local.push_back(item);
    }
  }

  /// Ends the window at a position, if that lies in it. An item behind it may ask for more.
  void stop_at(std::int64_t position) {
    plan_.length = std::clamp(position - window_.begin, std::int64_t{0}, plan_.length);
  }

  /// Two items of one key with different rows: the request cannot run.
  bool conflict(std::size_t item) {
    plan_ = {.compute_budget = plan_.compute_budget, .conflict = item};
    return false;
  }

  /// Of the last tokens of a prompt the draft model needs all or none.
  void keep_from_end(std::int64_t num_tokens) {
    const std::int64_t left = num_tokens - window_.begin - plan_.length;
    if (left <= 0 || left >= limits_.look_ahead) return;
    plan_.length = std::max(plan_.length - (limits_.look_ahead - left), std::int64_t{0});
  }

  /// Positions from here on are read by nobody in this step.
  [[nodiscard]] std::int64_t read_end() const { return window_.end + limits_.look_ahead; }

  EncoderCache& cache_;
  const CacheRequest& request_;
  IndexRange window_;
  const WindowLimits& limits_;
  WindowPlan plan_;
  std::unordered_map<std::string, std::int64_t> planned_;  // rows of keys to encode or to fetch
  std::int64_t promised_ = 0;                              // sum of those
};

}  // namespace

WindowPlan plan_window(EncoderCache& cache, const CacheRequest& request, IndexRange window,
                       const WindowLimits& limits) try {
  check_window(request, window, limits.look_ahead);
  return Planner(cache, request, window, limits).run();
} catch (...) {
  rethrow_as_error();
}

void release_consumed(EncoderCache& cache, const CacheRequest& request, std::int64_t computed) try {
  for (std::size_t item = 0; item < request.items.size(); ++item) {
    if (request.items[item].placeholder.end() <= computed) cache.release(request, item);
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
