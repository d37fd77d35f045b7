// A team of threads that wait for loops.
//
// Workers spin for a short while after a loop, because the next one usually follows within
// microseconds (a forward pass is some hundred loops in a row), and sleep afterwards.
// A loop is published under a new epoch number; tasks are taken from one atomic counter. A worker
// joins a loop that is open. The caller closes it when no task is left and waits for those that
// joined: on a busy machine a worker that has not been scheduled yet delays no caller.
#include "core/thread_pool.h"

#include <sched.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/blocked_signals.h"
#include "core/check.h"
#include "core/float_mode.h"
#include "core/interrupt.h"

namespace fovea {

namespace {

/// Rounds of waiting with a pause instruction before a worker goes to sleep: some 50 us.
constexpr int kSpinRounds = 2000;

/// The parts of Impl::loop, from the lowest bit: workers that have joined, whether more may join,
/// and the epoch.
constexpr std::uint64_t kJoined = 0xffff;
constexpr std::uint64_t kOpen = std::uint64_t{1} << 16;
constexpr int kEpochShift = 17;
constexpr std::uint64_t kNextEpoch = std::uint64_t{1} << kEpochShift;

#if defined(__aarch64__)
void pause_cpu() noexcept { asm volatile("isb"); }  // YIELD takes no time on most processors
#else
void pause_cpu() noexcept { __builtin_ia32_pause(); }
#endif

constexpr std::size_t kCacheLine = 64;

/// The pool whose loop body the current thread is running and its number there: a nested loop runs
/// serially under the same number.
thread_local const void* running_pool = nullptr;  // NOLINT(*-avoid-non-const-global-variables)
thread_local int running_worker = 0;              // NOLINT(*-avoid-non-const-global-variables)

}  // namespace

/// Memory of one worker.
struct Scratch {
  struct Free {
    void operator()(std::byte* memory) const noexcept { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> memory;
  std::size_t bytes = 0;
};

struct ThreadPool::Impl {
  Impl(int threads, WhenBusy busy)
      : num_threads(threads), when_busy(busy), scratch(static_cast<std::size_t>(threads)) {
    team.reserve(static_cast<std::size_t>(threads - 1));
    const BlockedSignals none;
    try {
      for (int worker = 1; worker < threads; ++worker)
        team.emplace_back([this, worker] { serve(worker); });
    } catch (const std::system_error& error) {
      const std::size_t started = team.size();
      dismiss();
      throw Error(ErrorCode::kIo, cat("cannot start thread ", started + 2, " of ", threads, ": ",
                                      error.code().message()));
    } catch (...) {  // no memory: threads that run must be joined
      dismiss();
      throw;
    }
  }

  ~Impl() { dismiss(); }

  void dismiss() {
    {
      const std::lock_guard lock(mutex);
      stopping.store(true, std::memory_order_relaxed);
      loop.fetch_add(kNextEpoch, std::memory_order_release);
    }
    wake.notify_all();
    for (std::thread& thread : team) thread.join();
  }

  /// Body of every thread of the team: waits for the next loop, joins it if it is still open.
  void serve(int worker) {
    std::uint64_t seen = 0;
    while (true) {
      wait_for_loop_after(seen);
      if (stopping.load(std::memory_order_relaxed)) return;
      seen = epoch();
      if (!join()) continue;
      work(worker);
      const std::uint64_t before = loop.fetch_sub(1, std::memory_order_acq_rel);
      if ((before & kOpen) == 0 && (before & kJoined) == 1) {
        const std::lock_guard lock(mutex);  // pairs with the check of the waiting caller
        done.notify_one();
      }
    }
  }

  [[nodiscard]] std::uint64_t epoch() const {
    return loop.load(std::memory_order_acquire) >> kEpochShift;
  }

  void wait_for_loop_after(std::uint64_t seen) {
    for (int round = 0; round < kSpinRounds && epoch() == seen; ++round) pause_cpu();
    if (epoch() != seen) return;
    std::unique_lock lock(mutex);
    wake.wait(lock, [&] { return epoch() != seen; });
  }

  /// Enters the current loop; false if it is closed.
  bool join() {
    std::uint64_t now = loop.load(std::memory_order_acquire);
    while ((now & kOpen) != 0) {
      if (loop.compare_exchange_weak(now, now + 1, std::memory_order_acq_rel)) return true;
    }
    return false;
  }

  /// Ends the current loop and waits for the workers that joined it.
  void close() {
    loop.fetch_and(~kOpen, std::memory_order_acq_rel);
    const auto is_left = [&] { return (loop.load(std::memory_order_acquire) & kJoined) == 0; };
    for (int round = 0; round < kSpinRounds && !is_left(); ++round) pause_cpu();
    if (is_left()) return;
    std::unique_lock lock(mutex);
    done.wait(lock, is_left);
  }

  void work(int worker) {
    const InterruptScope interrupt_scope(interrupt);
    const FloatModeScope float_scope(mode);
    const void* const outer_pool = std::exchange(running_pool, this);
    const int outer_worker = std::exchange(running_worker, worker);
    for (std::int64_t task = next.fetch_add(1); task < num_tasks; task = next.fetch_add(1)) {
      try {
        check_interrupt();
        (*body)(task, worker);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
        next.store(num_tasks);
      }
    }
    running_pool = outer_pool;
    running_worker = outer_worker;
  }

  void run_alone(std::int64_t count, Body loop_body) {
    const void* const outer_pool = std::exchange(running_pool, this);
    const int outer_worker = std::exchange(running_worker, 0);
    try {
      for (std::int64_t task = 0; task < count; ++task) {
        check_interrupt();
        loop_body(task, 0);
      }
    } catch (...) {
      running_pool = outer_pool;
      running_worker = outer_worker;
      throw;
    }
    running_pool = outer_pool;
    running_worker = outer_worker;
  }

  void run(std::int64_t count, Body loop_body) {
    if (when_busy == WhenBusy::kRunAlone) {
      run_from_now(count, loop_body);
    } else {
      const std::lock_guard turn(one_loop);
      run_by_team(count, loop_body);
    }
  }

  /// Tasks one by one until the team is free, the others by the team.
  void run_from_now(std::int64_t count, Body loop_body) {
    for (std::int64_t begin = 0; begin < count; ++begin) {
      const auto body_from_there = [&](std::int64_t task, int worker) {
        loop_body(begin + task, worker);
      };
      std::unique_lock turn(one_loop, std::defer_lock);
      if (begin + 1 < count && turn.try_lock()) {  // the last one is run here
        run_by_team(count - begin, body_from_there);
        return;
      }
      run_alone(1, body_from_there);
    }
  }

  /// With the team, which belongs to the caller.
  void run_by_team(std::int64_t count, Body loop_body) {
    if (num_threads == 1 || count <= 1) {  // not worth waking anybody
      run_alone(count, loop_body);
      return;
    }
    {
      const std::lock_guard lock(mutex);
      body = &loop_body;
      num_tasks = count;
      interrupt = current_interrupt();
      mode = float_mode();
      next.store(0);
      failure = nullptr;
      loop.fetch_add(kNextEpoch | kOpen, std::memory_order_release);
    }
    wake.notify_all();
    work(0);
    close();
    if (failure) std::rethrow_exception(std::exchange(failure, nullptr));
  }

  const int num_threads;
  const WhenBusy when_busy;
  std::mutex one_loop;  // held for the whole of one loop

  std::mutex mutex;  // guards the members below where they are not atomic
  std::condition_variable wake;
  std::condition_variable done;
  std::atomic<std::uint64_t> loop{0};  // kJoined, kOpen, epoch
  std::atomic<std::int64_t> next{0};
  std::int64_t num_tasks = 0;
  const Body* body = nullptr;
  const Interrupt* interrupt = nullptr;  // of the thread that called
  FloatMode mode = 0;                    // likewise
  std::exception_ptr failure;
  std::atomic<bool> stopping{false};
  std::vector<Scratch> scratch;  // by worker
  std::vector<std::thread> team;
};

ThreadPool::ThreadPool(int num_threads, WhenBusy when_busy) {
  FOVEA_CHECK(num_threads >= 1, kInvalidArgument, "a thread pool needs at least 1 thread, got ",
              num_threads);
  impl_ = std::make_unique<Impl>(num_threads, when_busy);
}

ThreadPool::~ThreadPool() = default;

int ThreadPool::size() const noexcept { return impl_->num_threads; }

void ThreadPool::parallel_for(std::int64_t num_tasks, Body body) {
  if (running_pool == impl_.get()) {
    for (std::int64_t task = 0; task < num_tasks; ++task) {
      check_interrupt();
      body(task, running_worker);
    }
  } else {
    impl_->run(num_tasks, body);
  }
}

std::byte* ThreadPool::scratch(int worker, std::size_t bytes) {
  Scratch& own = impl_->scratch[static_cast<std::size_t>(worker)];
  if (own.bytes >= bytes && own.memory != nullptr) return own.memory.get();
  const std::size_t lines = bytes / kCacheLine + 1;
  own.bytes = 0;
  own.memory.reset(static_cast<std::byte*>(std::aligned_alloc(kCacheLine, lines * kCacheLine)));
  FOVEA_CHECK(own.memory != nullptr, kOutOfMemory, "cannot allocate ", bytes,
              " bytes of scratch for a thread");
  own.bytes = lines * kCacheLine;
  return own.memory.get();
}

int available_cpus() noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  const int count = CPU_COUNT(&set);
  return count > 0 ? count : 1;
}

}  // namespace fovea
