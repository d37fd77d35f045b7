#include "core/thread_pool.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <future>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

#include "core/float_mode.h"
#include "support/expect_error.h"
#include "support/scarce_address_space.h"

namespace fovea {
namespace {

class ThreadPoolOfSize : public ::testing::TestWithParam<int> {
 protected:
  ThreadPool pool_{GetParam()};
};

TEST_P(ThreadPoolOfSize, KnowsItsSize) { EXPECT_EQ(pool_.size(), GetParam()); }

TEST_P(ThreadPoolOfSize, RunsEveryTaskOnce) {
  for (const std::int64_t count : {0, 1, 2, 3, 7, 1000}) {
    std::vector<std::atomic<int>> runs(static_cast<std::size_t>(count));
    pool_.parallel_for(count,
                       [&](std::int64_t task, int) { ++runs[static_cast<std::size_t>(task)]; });
    for (const auto& run : runs) EXPECT_EQ(run, 1) << count << " tasks";
  }
}

TEST_P(ThreadPoolOfSize, NeverRunsTwoTasksUnderOneWorkerAtATime) {
  std::vector<std::atomic<int>> busy(static_cast<std::size_t>(GetParam()));
  std::atomic<int> collisions = 0;
  pool_.parallel_for(500, [&](std::int64_t, int worker) {
    std::atomic<int>& mine = busy.at(static_cast<std::size_t>(worker));
    if (mine.fetch_add(1) != 0) ++collisions;
    std::this_thread::yield();
    mine.fetch_sub(1);
  });
  EXPECT_EQ(collisions, 0);
}

TEST_P(ThreadPoolOfSize, MakesWritesOfOneLoopVisibleToTheNext) {
  constexpr std::int64_t kTasks = 64;
  std::vector<std::int64_t> values(kTasks, 0);  // plain memory: a race would show under TSan
  for (int round = 0; round < 200; ++round) {
    pool_.parallel_for(kTasks, [&](std::int64_t task, int) {
      values[static_cast<std::size_t>((task + round) % kTasks)] += task;
    });
  }
  EXPECT_EQ(std::accumulate(values.begin(), values.end(), std::int64_t{0}),
            200 * kTasks * (kTasks - 1) / 2);
}

TEST_P(ThreadPoolOfSize, RethrowsTheExceptionOfATask) {
  const auto failing = [&] {
    pool_.parallel_for(100, [](std::int64_t task, int) {
      if (task == 37) throw std::runtime_error("task 37");
    });
  };
  EXPECT_THROW(failing(), std::runtime_error);
}

TEST_P(ThreadPoolOfSize, WorksOnAfterAnException) {
  EXPECT_THROW(pool_.parallel_for(8, [](std::int64_t, int) { throw std::runtime_error("x"); }),
               std::runtime_error);
  std::atomic<int> runs = 0;
  pool_.parallel_for(100, [&](std::int64_t, int) { ++runs; });
  EXPECT_EQ(runs, 100);
}

TEST_P(ThreadPoolOfSize, DropsTasksNotYetStartedAfterAnException) {
  constexpr std::int64_t kTasks = 1'000'000;
  std::atomic<std::int64_t> runs = 0;
  EXPECT_THROW(pool_.parallel_for(kTasks,
                                  [&](std::int64_t, int) {
                                    ++runs;
                                    throw std::runtime_error("x");
                                  }),
               std::runtime_error);
  EXPECT_LE(runs, GetParam());  // at most the tasks that were running
}

TEST_P(ThreadPoolOfSize, RunsANestedLoopSeriallyUnderTheSameWorker) {
  std::atomic<int> inner_runs = 0;
  std::atomic<int> strangers = 0;
  pool_.parallel_for(20, [&](std::int64_t, int outer) {
    std::int64_t expected = 0;
    pool_.parallel_for(5, [&](std::int64_t task, int inner) {
      if (inner != outer || task != expected++) ++strangers;
      ++inner_runs;
    });
  });
  EXPECT_EQ(inner_runs, 100);
  EXPECT_EQ(strangers, 0);
}

TEST_P(ThreadPoolOfSize, ServesCallersFromSeveralThreads) {
  std::atomic<int> runs = 0;
  std::vector<std::jthread> callers;
  for (int caller = 0; caller < 3; ++caller) {
    callers.emplace_back([&] {
      for (int round = 0; round < 50; ++round)
        pool_.parallel_for(10, [&](std::int64_t, int) { ++runs; });
    });
  }
  callers.clear();
  EXPECT_EQ(runs, 3 * 50 * 10);
}

INSTANTIATE_TEST_SUITE_P(Sizes, ThreadPoolOfSize, ::testing::Values(1, 2, 4, 9),
                         ::testing::PrintToStringParamName());

TEST(ThreadPool, OfOneRunsInTheCallingThread) {
  ThreadPool pool(1);
  const auto caller = std::this_thread::get_id();
  pool.parallel_for(5, [&](std::int64_t, int worker) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    EXPECT_EQ(worker, 0);
  });
}

TEST(ThreadPool, EndsWithoutEverHavingWorked) { ThreadPool pool(4); }

TEST(ThreadPool, TakesNoSignalsOfTheProgram) {
  ThreadPool pool(3);
  const pthread_t caller = pthread_self();
  std::atomic<int> workers = 0;
  std::atomic<int> open_to_signals = 0;
  while (workers == 0) {
    pool.parallel_for(100, [&](std::int64_t, int) {
      if (pthread_equal(pthread_self(), caller) != 0) return;
      sigset_t blocked;
      pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
      ++workers;
      open_to_signals += sigismember(&blocked, SIGTERM) == 0 ? 1 : 0;
    });
  }
  EXPECT_EQ(open_to_signals, 0);
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  EXPECT_EQ(sigismember(&blocked, SIGTERM), 0) << "the caller takes them as before";
}

TEST(ThreadPool, RunsALoopOfOnePoolInsideALoopOfAnother) {
  ThreadPool outer(2);
  ThreadPool inner(2);
  std::atomic<int> runs = 0;
  outer.parallel_for(
      4, [&](std::int64_t, int) { inner.parallel_for(3, [&](std::int64_t, int) { ++runs; }); });
  EXPECT_EQ(runs, 12);
}

/// Keeps a thread from running, as a busy machine would: it stays in a signal handler, reading from
/// a pipe, until the end of the scope.
class StoppedThread {
 public:
  explicit StoppedThread(pthread_t thread) {
    EXPECT_EQ(pipe(entered), 0);
    EXPECT_EQ(pipe(released), 0);
    before_ = std::signal(SIGPROF, [](int) {
      char byte = 0;
      if (write(entered[1], &byte, 1) == 1) (void)!read(released[0], &byte, 1);
    });
    EXPECT_EQ(pthread_kill(thread, SIGPROF), 0);
    char byte = 0;
    EXPECT_EQ(read(entered[0], &byte, 1), 1);
  }
  ~StoppedThread() {
    close(released[1]);  // ends the read
    std::signal(SIGPROF, before_);
    for (const int end : {entered[0], entered[1]}) close(end);
  }
  StoppedThread(const StoppedThread&) = delete;
  StoppedThread& operator=(const StoppedThread&) = delete;

 private:
  static inline int entered[2];
  static inline int released[2];
  void (*before_)(int) = nullptr;
};

TEST(ThreadPool, DoesNotWaitForAWorkerThatHasNotBegun) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer holds signals back";
#endif
  ThreadPool pool(2);
  const pthread_t caller = pthread_self();
  std::atomic<pthread_t> worker = caller;
  while (worker == caller) {
    pool.parallel_for(100, [&](std::int64_t, int) {
      if (!pthread_equal(pthread_self(), caller)) worker = pthread_self();
      std::this_thread::yield();
    });
  }
  // It leaves that loop and goes to sleep; stopped on the way it might hold the lock of the pool.
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  std::atomic<int> runs = 0;
  std::optional<StoppedThread> stopped(std::in_place, worker.load());
  const auto loop = std::async(std::launch::async,
                               [&] { pool.parallel_for(10, [&](std::int64_t, int) { ++runs; }); });
  EXPECT_EQ(loop.wait_for(std::chrono::seconds(20)), std::future_status::ready);
  stopped.reset();
  loop.wait();
  EXPECT_EQ(runs, 10);
}

TEST(ThreadPool, ACallerThatFindsTheTeamAtWorkBeginsAlone) {
  ThreadPool pool(2, ThreadPool::WhenBusy::kRunAlone);
  std::atomic<int> inside = 0;
  std::atomic<bool> other_is_done = false;
  std::thread long_loop([&] {
    pool.parallel_for(2, [&](std::int64_t, int) {
      ++inside;
      while (!other_is_done) std::this_thread::yield();
    });
  });
  while (inside < 2) std::this_thread::yield();
  std::vector<std::thread::id> ran;
  pool.parallel_for(5, [&](std::int64_t, int) { ran.push_back(std::this_thread::get_id()); });
  EXPECT_EQ(ran, std::vector(5, std::this_thread::get_id()));
  other_is_done = true;
  long_loop.join();
}

TEST(ThreadPool, TheTeamJoinsACallerThatBeganAloneWhenItIsFree) {
  ThreadPool pool(2, ThreadPool::WhenBusy::kRunAlone);
  std::atomic<int> inside = 0;
  std::atomic<bool> go = false;
  std::thread long_loop([&] {
    pool.parallel_for(2, [&](std::int64_t, int) {
      ++inside;
      while (!go) std::this_thread::yield();
    });
  });
  while (inside < 2) std::this_thread::yield();
  std::vector<int> runs(4);
  std::atomic<int> together = 0;
  pool.parallel_for(4, [&](std::int64_t task, int) {
    ++runs[static_cast<std::size_t>(task)];
    if (task == 0) {  // alone; the team is free afterwards
      go = true;
      long_loop.join();
    } else if (task < 3) {  // two tasks that wait for each other
      ++together;
      while (together < 2) std::this_thread::yield();
    }
  });
  EXPECT_EQ(runs, std::vector(4, 1));
}

TEST(ThreadPool, GivesEveryWorkerScratchOfItsOwn) {
  ThreadPool pool(3);
  std::atomic<int> mixed{0};
  pool.parallel_for(300, [&](std::int64_t task, int worker) {
    const std::size_t bytes = 1000 + static_cast<std::size_t>(task);
    std::byte* const memory = pool.scratch(worker, bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory) % 64, 0u);
    std::fill_n(memory, bytes, static_cast<std::byte>(task));
    mixed += static_cast<int>(bytes - static_cast<std::size_t>(std::count(
                                          memory, memory + bytes, static_cast<std::byte>(task))));
  });
  EXPECT_EQ(mixed, 0);
}

TEST(ThreadPool, KeepsScratchThatIsLargeEnough) {
  ThreadPool pool(1);
  std::byte* const memory = pool.scratch(0, 1000);
  EXPECT_EQ(pool.scratch(0, 10), memory);
  EXPECT_EQ(pool.scratch(0, 1000), memory);
}

TEST(ThreadPool, WorkersTakeTheFloatModeOfTheCaller) {
  ThreadPool pool(2);
  for (const FloatMode mode : {kTowerFloatMode, float_mode()}) {
    const FloatModeScope scope(mode);
    std::atomic<int> others{0};
    pool.parallel_for(1000, [&](std::int64_t, int) { others += float_mode() != mode; });
    EXPECT_EQ(others, 0);
  }
}

TEST(ThreadPool, RefusesZeroThreads) {
  test::expect_error(ErrorCode::kInvalidArgument, "at least 1 thread, got 0",
                     [] { ThreadPool pool(0); });
}

TEST(ThreadPool, SaysHowManyThreadsItGot) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need address space without bounds";
#endif
  const test::ScarceAddressSpace limit(std::size_t{128} << 20);  // stacks of some 16 threads
  test::expect_error(ErrorCode::kIo, " of 4000: ", [] { ThreadPool pool(4000); });
  EXPECT_EQ(ThreadPool(2).size(), 2);
}

TEST(AvailableCpus, AreAtLeastOne) { EXPECT_GE(available_cpus(), 1); }

}  // namespace
}  // namespace fovea
