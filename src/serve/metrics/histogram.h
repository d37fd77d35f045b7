#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "serve/metrics/metrics_text.h"

namespace fovea::serve {

/// Upper bounds of times, in seconds.
inline constexpr std::array kSeconds{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                     0.25,   0.5,   1.0,    2.5,   5.0,  10.0,  30.0, 60.0};

/// Counts times by size. Thread-safe; written without a lock, so that a reader may see a value in
/// a bucket before it is in the sum.
class TimeHistogram {
 public:
  void observe(double seconds) noexcept {
    const auto bucket =
        static_cast<std::size_t>(std::ranges::lower_bound(kSeconds, seconds) - kSeconds.begin());
    counts_[bucket].fetch_add(1, std::memory_order_relaxed);
    sum_.fetch_add(seconds, std::memory_order_relaxed);
  }

  void write(MetricsText& text, Labels labels) const {
    std::array<std::uint64_t, kSeconds.size() + 1> counts{};
    for (std::size_t i = 0; i < counts.size(); ++i) counts[i] = counts_[i];
    text.buckets(kSeconds, counts, sum_, labels);
  }

 private:
  std::array<std::atomic<std::uint64_t>, kSeconds.size() + 1> counts_{};
  std::atomic<double> sum_ = 0;
};

}  // namespace fovea::serve
