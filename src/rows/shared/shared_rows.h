#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "fovea/embedding.h"
#include "fovea/log.h"
#include "fovea/stats.h"
#include "rows/shared/row_entry.h"
#include "rows/shared/row_place.h"

namespace fovea {

struct SharedRowsOptions {
  RowDType dtype = RowDType::kFloat32;  ///< of rows as the tower leaves them; part of their names
  std::int64_t width = 0;               ///< of these
  std::chrono::milliseconds find_time{500};  ///< that a caller may wait, for each item
  std::chrono::milliseconds keep_time{10'000};
  /// How long a place that failed is passed over: at first, and after failures one after the other.
  std::chrono::milliseconds shortest_pause{1'000};
  std::chrono::milliseconds longest_pause{30'000};
  LogSink* log = nullptr;
};

/// Rows that several processes share, behind a memory of rows that is this process's own. Callers
/// wait for what they look for, for a bounded time; what is to be kept is written on a thread of
/// its own. A place that fails, or does not answer in time, is passed over for a while, as a
/// circuit breaker does: callers then wait for nothing. What hangs is left behind on its thread,
/// and nothing is asked before that has ended. Thread-safe.
///
/// Under which names: the key, which says content, model and options, the dtype of the tower's
/// rows, and, by the place, the version of Fovea.
class SharedRows {
 public:
  /// The rows of a key, in the dtype of the options; nothing if they are not here any more.
  using Source = std::function<std::optional<Embedding>(const std::string& key)>;

  /// @param source asked for what is to be kept, on a thread of this object; outlives it.
  /// @throws Error(kIo) if there is no thread to be had.
  SharedRows(std::shared_ptr<RowPlace> place, SharedRowsOptions options, Source source);
  /// What is still to be kept is not. Waits for the source, and for no place.
  ~SharedRows();
  SharedRows(const SharedRows&) = delete;
  SharedRows& operator=(const SharedRows&) = delete;

  /// What the place has of these keys, in their order: nothing for what it has not, not whole, or
  /// of another width, and nothing at all where it gives no answer in time.
  [[nodiscard]] std::vector<std::optional<RowEntry>> find(std::span<const std::string> keys);
  /// Has rows kept soon. Never waits; more than kMostWaiting are not kept.
  void keep(const std::string& key);
  /// Returns when nothing is waiting to be kept.
  void wait_idle();

  [[nodiscard]] SharedRowsStats stats() const;

  static constexpr std::size_t kMostWaiting = 4'096;

 private:
  using Clock = std::chrono::steady_clock;

  void run(const std::stop_token& ends);
  /// @return whether the place has got it.
  [[nodiscard]] bool write(const std::string& key, const std::stop_token& ends);
  [[nodiscard]] std::string name_of(const std::string& key) const;
  /// Does work with the place on a thread that is left behind after some time, or when `ends` wants
  /// it, unless the place is passed over. @return whether it has been done.
  bool ask(std::chrono::milliseconds most, std::function<void(RowPlace&)> work,
           const std::stop_token& ends = {});
  /// Whether the place is passed over. After a pause one may try, if `is_to_try`.
  [[nodiscard]] bool is_passed_over(bool is_to_try);
  void fail(std::string_view why);
  /// Writes a line of the log, if there is memory for it.
  void say(LogLevel level, const char* event, std::string_view why) const noexcept;
  void succeed();

  const std::shared_ptr<RowPlace> place_;
  const SharedRowsOptions options_;
  const Source source_;
  /// Threads that work with the place, those left behind, too.
  const std::shared_ptr<std::atomic<int>> running_ = std::make_shared<std::atomic<int>>(0);

  mutable std::mutex mutex_;  // guards what follows, up to the thread
  std::condition_variable_any changed_;
  std::deque<std::string> waiting_;
  bool is_writing_ = false;
  std::chrono::milliseconds pause_{0};  // after the last failure; 0: there was none
  Clock::time_point ask_from_{};        // the end of this pause
  bool is_tried_ = false;               // by one, after it
  SharedRowsStats stats_;
  std::jthread thread_;
};

}  // namespace fovea
