// Requests as a server has them: clients that wait for their rows, or arrivals that wait for
// nobody.
#include "bench/serve/load.h"

#include <atomic>
#include <cmath>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "bench/synthetic.h"
#include "core/stopwatch.h"

namespace fovea::cli {
namespace {

/// Calls encode(item) for every item from as many threads as there are clients.
ServeRun run_clients(const ServeLoad& load, const std::function<void(const MediaItem&)>& encode) {
  ServeRun run;
  std::mutex mutex;  // guards the run and the failure
  std::exception_ptr failure;
  std::atomic<std::size_t> next = 0;
  const Stopwatch watch;
  {
    std::vector<std::jthread> clients;
    for (std::int64_t i = 0; i < load.clients; ++i) {
      clients.emplace_back([&] {
        for (std::size_t item = next++; item < load.items.size(); item = next++) {
          const Stopwatch request;
          try {
            encode(load.items[item]);
          } catch (...) {
            const std::lock_guard lock(mutex);
            failure = std::current_exception();
            return;
          }
          const std::lock_guard lock(mutex);
          run.latency_ms.push_back(request.elapsed_ms());
        }
      });
    }
  }
  run.seconds = watch.elapsed_seconds();
  if (failure) std::rethrow_exception(failure);
  return run;
}

/// Submits every item at its moment. A reply late because the submitter was late counts as late.
ServeRun run_arrivals(Batcher& batcher, const ServeLoad& load) {
  using Clock = Stopwatch::Clock;
  ServeRun run;
  std::mutex mutex;  // guards the run and the failure
  std::optional<Error> failure;
  const std::vector<double> moments = arrivals(std::ssize(load.items), *load.rate, load.seed);
  const Clock::time_point begin = Clock::now();
  for (std::size_t i = 0; i < moments.size(); ++i) {
    const Clock::time_point moment = begin + std::chrono::duration_cast<Clock::duration>(
                                                 std::chrono::duration<double>(moments[i]));
    std::this_thread::sleep_until(moment);
    try {
      batcher.submit({load.items[i]}, {}, [&, moment](const BatchReply& reply) {
        const std::lock_guard lock(mutex);
        if (reply.error) failure = reply.error;
        if (!reply.error) run.latency_ms.push_back(Stopwatch(moment).elapsed_ms());
      });
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kUnavailable) throw;
      ++run.refused;
    }
  }
  batcher.drain();
  run.seconds = Stopwatch(begin).elapsed_seconds();
  if (failure) throw Error(*failure);
  return run;
}

}  // namespace

std::vector<double> arrivals(std::int64_t count, double rate, std::uint64_t seed) {
  Random random(seed);
  std::vector<double> moments;
  double now = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    now -= std::log1p(-random.uniform()) / rate;
    moments.push_back(now);
  }
  return moments;
}

ServeRun run_one_call(Engine& engine, const ServeLoad& load) {
  const Stopwatch watch;
  const std::size_t count = engine.encode(load.items).size();
  ServeRun run;
  run.seconds = watch.elapsed_seconds();
  run.latency_ms.assign(count, watch.elapsed_ms());
  return run;
}

ServeRun run_on_engine(Engine& engine, const ServeLoad& load) {
  return run_clients(load, [&](const MediaItem& item) { (void)engine.encode({&item, 1}); });
}

ServeRun run_on_batcher(Engine& engine, const ServeLoad& load, const BatcherOptions& options) {
  Batcher batcher(engine, options);
  ServeRun run =
      load.rate ? run_arrivals(batcher, load) : run_clients(load, [&](const MediaItem& item) {
        (void)batcher.submit({item}).rows.get();
      });
  batcher.stop();
  run.stats = batcher.stats();
  return run;
}

}  // namespace fovea::cli
