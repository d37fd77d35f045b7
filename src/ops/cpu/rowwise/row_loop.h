#pragma once

#include <algorithm>
#include <cstdint>

#include "core/check.h"
#include "core/rounding.h"
#include "core/thread_pool.h"
#include "fovea/tower/ops/context.h"

namespace fovea::cpu {

/// Number of live rows of a tensor with `capacity` rows, read now: call it when the work runs.
/// @throws Error(kInternal) if the count does not lie in [0, capacity].
inline std::int64_t count_live(LiveRows rows, std::int64_t capacity) {
  if (rows.count == nullptr) return capacity;
  FOVEA_CHECK(*rows.count >= 0 && *rows.count <= capacity, kInternal, "live count is ", *rows.count,
              ", capacity ", capacity);
  return *rows.count;
}

/// Floats that one task of a row loop should touch: some microseconds of work, much more than the
/// cost of starting a task. For less it does not pay to wake a thread.
inline constexpr std::int64_t kRowLoopGrain = 16384;

/// Calls body(first, last) for ranges of rows that cover [0, rows), on all threads of the pool.
/// Results must not depend on the division.
template <class F>
void for_row_ranges(ThreadPool& pool, std::int64_t rows, std::int64_t floats_per_row,
                    const F& body) {
  const std::int64_t step =
      std::max<std::int64_t>(1, kRowLoopGrain / std::max<std::int64_t>(1, floats_per_row));
  pool.parallel_for(ceil_div(rows, step), [&](std::int64_t task, int) {
    body(task * step, std::min(rows, (task + 1) * step));
  });
}

}  // namespace fovea::cpu
