#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <vector>

#include "media/process/decoder_process.h"

namespace fovea::media {

/// A number of places for decoder processes of one kind. Thread-safe.
class ProcessPool {
 public:
  using Start = std::function<std::unique_ptr<DecoderProcess>()>;

  /// @param count of places. @param start makes a process; called by several threads at once.
  ProcessPool(int count, Start start);

  /// A process of one user, for the lifetime of the lease.
  class Lease {
   public:
    /// Waits for a place, in order of arrival, and starts a process if none is idle.
    /// @throws as check_interrupt and as `start`.
    explicit Lease(ProcessPool& pool);
    /// Keeps the process for others if it is idle and not worn out; ends it otherwise.
    ~Lease();
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    [[nodiscard]] DecoderProcess* operator->() const noexcept { return process_.get(); }

   private:
    ProcessPool& pool_;
    std::unique_ptr<DecoderProcess> process_;
  };

 private:
  /// Waits in line. @return an idle process; null if there is none.
  [[nodiscard]] std::unique_ptr<DecoderProcess> take_place();
  void give_place(std::unique_ptr<DecoderProcess> process) noexcept;

  Start start_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int free_places_;
  std::list<char> waiting_;  ///< one entry per waiting thread, in order of arrival
  std::vector<std::unique_ptr<DecoderProcess>> idle_;
};

}  // namespace fovea::media
