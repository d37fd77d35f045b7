// The multiply-add peak.
#include <algorithm>
#include <chrono>
#include <cstdint>

#include "core/thread_pool.h"
#include "ops/cpu/cpu_kernels.h"
#include "ops/cpu/isa/peak_loops.h"

namespace fovea::cpu {

namespace {

/// GFLOP/s of the best repetition.
double measure(const PeakLoop& loop, int num_threads, double seconds) {
  using Clock = std::chrono::steady_clock;
  // 1.5 million rounds take some 3 ms: long against waking a thread, short against a time slice.
  constexpr std::int64_t kRounds = 1'500'000;
  ThreadPool pool(num_threads);
  const Clock::time_point start = Clock::now();
  const double gflop = loop.flops_per_round * kRounds * num_threads * 1e-9;
  double best = 0;
  do {
    const Clock::time_point begin = Clock::now();
    pool.parallel_for(num_threads, [&](std::int64_t, int) { loop.run(kRounds); });
    best = std::max(best, gflop / std::chrono::duration<double>(Clock::now() - begin).count());
  } while (std::chrono::duration<double>(Clock::now() - start).count() < seconds);
  return best;
}

}  // namespace

double fma_peak_gflops(int num_threads, double seconds) {
  return measure(f32_peak_loop(), num_threads, seconds);
}

std::optional<double> bf16_peak_gflops(int num_threads, double seconds) {
  const std::optional<PeakLoop> loop = bf16_peak_loop();
  if (!loop) return std::nullopt;
  return measure(*loop, num_threads, seconds);
}

}  // namespace fovea::cpu
