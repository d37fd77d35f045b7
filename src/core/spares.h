#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace fovea {

/// Objects that one thread at a time works with, kept for the next one: as many as threads have
/// worked at the same time. A thread that comes alone always gets the same object. One that the
/// last 32 loans had no need for is released. Thread-safe.
template <class T>
class Spares {
 public:
  /// @param make makes an object when none is free; outlives the spares.
  explicit Spares(std::function<std::unique_ptr<T>()> make) : make_(std::move(make)) {}

  /// An object on loan; goes back at the end. The spares must outlive it.
  class Loan {
   public:
    Loan(Spares& owner, std::unique_ptr<T> object) noexcept
        : owner_(owner), object_(std::move(object)) {}
    ~Loan() { owner_.take_back(std::move(object_)); }
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    [[nodiscard]] T& operator*() const noexcept { return *object_; }
    [[nodiscard]] T* operator->() const noexcept { return object_.get(); }

   private:
    Spares& owner_;
    std::unique_ptr<T> object_;
  };

  /// @throws what making an object throws.
  [[nodiscard]] Loan take() {
    std::unique_ptr<T> object;
    {
      const std::lock_guard lock(mutex_);
      // A place for all there will be, so that nothing can fail on the way back.
      free_.reserve(free_.size() + lent_ + (free_.empty() ? 1 : 0));
      ++loans_;
      if (!free_.empty()) {
        object = std::move(free_.back().object);
        free_.pop_back();
      }
      ++lent_;
    }
    if (object) return Loan(*this, std::move(object));
    try {
      return Loan(*this, make_());
    } catch (...) {
      const std::lock_guard lock(mutex_);
      --lent_;
      throw;
    }
  }
  /// Releases the objects that are not on loan.
  void clear() {
    std::vector<Free> released;
    const std::lock_guard lock(mutex_);
    released.reserve(lent_);  // so that nothing can fail when those on loan come back
    released.swap(free_);
  }

 private:
  static constexpr std::uint64_t kRecentLoans = 32;
  struct Free {
    std::unique_ptr<T> object;
    std::uint64_t since = 0;  // loans_ when it came back
  };

  void take_back(std::unique_ptr<T> object) noexcept {
    std::unique_ptr<T> released;  // after the lock
    const std::lock_guard lock(mutex_);
    --lent_;
    free_.push_back({std::move(object), loans_});
    // The last to come back is the next to go: who is first has been idle longest.
    if (loans_ - free_.front().since < kRecentLoans) return;
    released = std::move(free_.front().object);
    free_.erase(free_.begin());
  }

  std::function<std::unique_ptr<T>()> make_;
  std::mutex mutex_;
  std::vector<Free> free_;
  std::size_t lent_ = 0;
  std::uint64_t loans_ = 0;
};

}  // namespace fovea
