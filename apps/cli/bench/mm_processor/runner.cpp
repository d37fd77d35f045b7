// Sending the requests of a benchmark and writing down what came back.
#include "bench/mm_processor/runner.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <future>
#include <mutex>
#include <thread>
#include <utility>

#include "bench/synthetic.h"
#include "core/stopwatch.h"
#include "fovea/embedding.h"

namespace fovea::cli {
namespace {

using Clock = Stopwatch::Clock;
using Seconds = std::chrono::duration<double>;

/// The outcome of a request.
struct Answer {
  RequestRecord record;
  std::optional<std::string> failure;
};

Answer send(const RunContext& ctx, std::span<const MediaItem> items, TowerMode mode,
            Clock::time_point arrival) {
  const std::vector<Embedding> rows = ctx.engine.encode(
      items,
      {.dtype = ctx.dtype, .on_error = OnError::kSkip, .enforce_eager = mode == TowerMode::kEager});
  Answer answer;
  answer.record.e2e_ms = Stopwatch(arrival).elapsed_ms();
  for (const Embedding& item : rows) {
    if (item.error && !answer.failure) answer.failure = item.error->what();
    answer.record.times += item.times;
    ++answer.record.items;
    answer.record.rows += item.rows;
  }
  return answer;
}

/// Files the answer.
void take(WorkloadRun& run, Answer answer) {
  if (answer.failure) {
    run.failures.push_back(std::move(*answer.failure));
  } else {
    run.completed.push_back(answer.record);
  }
}

/// Moments of a Poisson process, from 0 on.
std::vector<Seconds> arrival_times(std::size_t count, const Arrivals& arrivals) {
  Random random(arrivals.seed);
  std::vector<Seconds> times(count);
  Seconds now{0};
  for (Seconds& time : times) {
    time = now;
    now += Seconds(-std::log1p(-random.uniform()) / arrivals.per_second);
  }
  return times;
}

}  // namespace

const char* to_string(TowerMode mode) noexcept {
  return mode == TowerMode::kGraphs ? "graphs" : "eager";
}

std::vector<WorkloadRun> run_in_turn(const RunContext& ctx, std::span<const TowerMode> modes) {
  std::vector<WorkloadRun> runs;
  for (const TowerMode mode : modes) runs.push_back({.mode = mode});
  std::vector<std::vector<MediaItem>> made;  // of the next few requests: all may not fit
  for (std::size_t request = 0; request < ctx.requests.size(); ++request) {
    constexpr std::size_t kAtOnce = 32;
    if (request % kAtOnce == 0) {
      made = make_all_items(
          ctx.requests.subspan(request).first(std::min(kAtOnce, ctx.requests.size() - request)),
          ctx.encoding);
    }
    const std::vector<MediaItem>& items = made[request % kAtOnce];
    for (std::size_t turn = 0; turn < runs.size(); ++turn) {
      WorkloadRun& run = runs[request % 2 == 0 ? turn : runs.size() - 1 - turn];
      const Stats before = ctx.engine.stats();
      Answer answer = send(ctx, items, run.mode, Clock::now());
      const GraphCounts counts = counts_between(before, ctx.engine.stats());
      answer.record.encoder_calls = counts.encoder_calls;
      run.counts += counts;
      run.seconds += answer.record.e2e_ms / 1e3;
      take(run, std::move(answer));
      ctx.advance();
    }
  }
  return runs;
}

WorkloadRun run_arrivals(const RunContext& ctx, TowerMode mode, const Arrivals& arrivals) {
  const std::vector<std::vector<MediaItem>> requests = make_all_items(ctx.requests, ctx.encoding);
  const bool open = arrivals.per_second > 0;
  const std::vector<Seconds> times =
      open ? arrival_times(requests.size(), arrivals) : std::vector<Seconds>{};
  std::vector<Answer> answers(requests.size());
  std::atomic<std::size_t> next{0};
  std::mutex progress;  // one call of ctx.advance at a time

  const Stats before = ctx.engine.stats();
  const Clock::time_point start = Clock::now();
  const auto serve = [&] {
    for (std::size_t i = next++; i < requests.size(); i = next++) {
      const Clock::time_point arrival =
          open ? start + std::chrono::duration_cast<Clock::duration>(times[i]) : Clock::now();
      std::this_thread::sleep_until(arrival);
      answers[i] = send(ctx, requests[i], mode, arrival);
      const std::lock_guard lock(progress);
      ctx.advance();
    }
  };
  std::vector<std::future<void>> servers;
  const auto places = static_cast<std::size_t>(arrivals.max_concurrency);
  for (std::size_t i = 0; i < std::min(places, requests.size()); ++i) {
    servers.push_back(std::async(std::launch::async, serve));
  }
  for (std::future<void>& server : servers) server.get();

  WorkloadRun run{.mode = mode};
  run.seconds = Stopwatch(start).elapsed_seconds();
  run.counts = counts_between(before, ctx.engine.stats());
  for (Answer& answer : answers) take(run, std::move(answer));
  return run;
}

}  // namespace fovea::cli
