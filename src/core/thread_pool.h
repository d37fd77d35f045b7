#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>

namespace fovea {

/// A fixed team of threads for data-parallel loops. The calling thread works too, so a pool of one
/// starts no thread at all. The team runs one loop at a time.
/// Loops must not be nested: parallel_for inside a loop body of the same pool runs serially.
class ThreadPool {
 public:
  /// The choice of a caller while the team runs the loop of another.
  enum class WhenBusy : std::uint8_t {
    kWait,  ///< waits
    /// Begins alone: a short loop does not wait for a long one. The team joins when it is free.
    /// Tasks of several callers then run under worker 0 at a time, so it must not index memory.
    kRunAlone,
  };

  /// @param num_threads threads that take part, the caller included; >= 1.
  /// @throws Error(kInvalidArgument) if num_threads < 1, Error(kIo) if the system cannot
  /// start that many.
  explicit ThreadPool(int num_threads, WhenBusy when_busy = WhenBusy::kWait);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] int size() const noexcept;

  /// A reference to a loop body; never outlives the call it is passed to, never allocates.
  class Body {
   public:
    template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, Body>)
        Body(F&& f)  // NOLINT: a loop body is passed as it is
        : object_(const_cast<void*>(static_cast<const void*>(std::addressof(f)))),
          call_([](void* object, std::int64_t task, int worker) {
            (*static_cast<std::remove_reference_t<F>*>(object))(task, worker);
          }) {}
    void operator()(std::int64_t task, int worker) const { call_(object_, task, worker); }

   private:
    void* object_;
    void (*call_)(void*, std::int64_t, int);
  };

  /// Calls body(task, worker) once for every task in [0, num_tasks), several at a time, and
  /// returns when all are done. `worker` is in [0, size()); two tasks with equal worker never run
  /// at the same time (but see WhenBusy), so it may index scratch memory. Tasks are handed out one
  /// by one in ascending order. Allocates nothing. Tasks work under the interrupt of the calling
  /// thread, which is checked before each, and in its floating-point mode. The first exception of a
  /// body is rethrown here after all running tasks have ended; tasks not yet started are dropped
  /// then.
  /// @throws also Error(kCancelled) or Error(kDeadline), as check_interrupt.
  void parallel_for(std::int64_t num_tasks, Body body);

  /// At least `bytes` of memory for the task that runs as `worker`, aligned to a cache line, with
  /// whatever is in it. Kept by the pool: a worker allocates when it first asks for so much. Not
  /// for pools of WhenBusy::kRunAlone. Threads of a host may have small stacks.
  /// @throws Error(kOutOfMemory).
  [[nodiscard]] std::byte* scratch(int worker, std::size_t bytes);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Number of CPUs this process may run on (its affinity mask); at least 1.
[[nodiscard]] int available_cpus() noexcept;

}  // namespace fovea
