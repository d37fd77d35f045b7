#pragma once

#include <condition_variable>
#include <cstddef>
#include <list>
#include <mutex>
#include <optional>
#include <utility>

namespace fovea {

/// Bytes that threads may hold together: a counting semaphore whose tickets differ in size. Threads
/// that wait are served in order of arrival, so that small tickets do not overtake a large one.
/// Thread-safe. Outlives its tickets.
class Budget {
 public:
  explicit Budget(std::size_t capacity) noexcept : capacity_(capacity) {}
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  /// The bytes that its holder has, given back in the destructor. For one thread at a time. A
  /// default ticket is one of no budget, and has nothing.
  class Ticket {
   public:
    Ticket() = default;
    /// Has nothing of this budget so far.
    explicit Ticket(Budget& budget) noexcept : budget_(&budget) {}
    Ticket(Ticket&& other) noexcept
        : budget_(std::exchange(other.budget_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
    Ticket& operator=(Ticket&& other) noexcept {
      std::swap(budget_, other.budget_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Ticket() { shrink(bytes_); }

    [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
    /// Takes so many bytes more, without waiting. @return whether they were there, and no thread
    /// waits for them; if not, nothing has changed.
    [[nodiscard]] bool try_grow(std::size_t more) noexcept;
    /// Gives back some of its bytes. @param less at most bytes().
    void shrink(std::size_t less) noexcept;

   private:
    friend Budget;
    Budget* budget_ = nullptr;
    std::size_t bytes_ = 0;
  };

  /// Waits until so many bytes are free and no thread is before this one; for more than the whole
  /// budget, which makes a ticket of all of it, until all of it is free. A thread must not hold a
  /// ticket while it waits for another: two threads could wait for each other.
  /// @throws Error(kCancelled) or Error(kDeadline) if the interrupt of this thread ends its wait.
  [[nodiscard]] Ticket take(std::size_t bytes);
  /// The same without waiting. @return nothing if the bytes are not there, or a thread waits for
  /// them; always for more than the whole budget.
  [[nodiscard]] std::optional<Ticket> try_take(std::size_t bytes) noexcept;

  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  /// Bytes of all tickets.
  [[nodiscard]] std::size_t used() const;
  /// Number of threads that wait.
  [[nodiscard]] std::size_t num_waiting() const;

 private:
  const std::size_t capacity_;
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::size_t used_ = 0;                   // at most capacity_
  std::list<const std::size_t*> waiting_;  // what each wants, on its stack; in order of arrival
};

}  // namespace fovea
