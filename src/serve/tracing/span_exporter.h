#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "fovea/log.h"
#include "serve/tracing/span.h"
#include "serve/tracing/tracing_options.h"

namespace fovea::serve {

/// What became of spans.
struct ExportStats {
  std::int64_t sent = 0;        ///< and taken by the collector
  std::int64_t queue_full = 0;  ///< dropped: more came than are sent
  std::int64_t not_sent = 0;    ///< dropped: the collector could not be reached, or refused them
};

/// Sends spans to a collector from a thread of its own: requests hand them over and never wait.
/// Knows libcurl. Thread-safe.
class SpanExporter {
 public:
  /// Asked on that thread for spans that are made only then, before others are sent.
  using Collect = std::function<void(std::vector<Span>& spans, bool is_last)>;

  /// @param log is told when the collector is not reached, and when it is again; may be null,
  /// outlives this. @param collect may be empty. @throws Error(kIo) if there is no thread to be
  /// had.
  explicit SpanExporter(TracingOptions options, LogSink* log = nullptr, Collect collect = {});
  /// Sends what there is, if that succeeds at once; takes three seconds at most.
  ~SpanExporter();
  SpanExporter(const SpanExporter&) = delete;
  SpanExporter& operator=(const SpanExporter&) = delete;

  /// Takes a span, or drops it where max_queue wait. Drops it, too, where there is no memory.
  void add(Span span) noexcept;
  [[nodiscard]] ExportStats stats() const noexcept;

 private:
  /// An attempt to send spans.
  enum class Attempt : std::uint8_t { kTaken, kAgain, kRefused };

  void run() noexcept;
  void send_all(bool is_last);
  /// Follows the clock of the system where that was set, and not its trembling: spans of a trace
  /// may be sent apart.
  void follow_clock();
  /// Spans that wait, at most max_batch.
  [[nodiscard]] std::vector<Span> take();
  /// Sends them and counts what became of them. @return whether they were taken.
  bool send(const std::vector<Span>& spans, bool is_last);
  /// @param reason is set unless they are taken. @return whether they are.
  /// @throws Error(kInternal) if libcurl takes an option not, std::bad_alloc.
  [[nodiscard]] bool try_to_send(const std::vector<Span>& spans, bool is_last, std::string& reason);
  /// @param reason is set unless they are taken.
  [[nodiscard]] Attempt post(const std::string& body, std::string& reason) const;
  /// Says in the log what has changed. @param reason empty: spans are taken.
  void note(const std::string& reason);
  /// Waits before the next attempt; false: this ends.
  [[nodiscard]] bool wait(std::chrono::milliseconds time);

  const TracingOptions options_;
  LogSink* const log_;
  const Collect collect_;
  // For the thread alone.
  bool is_reached_ = true;
  std::chrono::nanoseconds offset_{0};  ///< from the steady clock to that of the system
  mutable std::mutex mutex_;            // guards what follows
  std::condition_variable changed_;
  std::deque<Span> queue_;
  ExportStats stats_;
  bool ends_ = false;
  std::atomic<std::int64_t> last_moment_;  ///< of the steady clock, for what is being sent
  std::thread thread_;
};

}  // namespace fovea::serve
