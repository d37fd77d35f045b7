#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "serve/tracing/span.h"
#include "serve/tracing/span_exporter.h"

namespace fovea::serve {

class Tracer;

/// The trace of a request: its own span, and below it spans of its stages, one after the other.
/// Is there only while spans are made, so that others pay for a null pointer. Functions may be
/// called from any thread, stages by one at a time. The tracer outlives it.
class RequestTrace {
 public:
  using Time = Span::Time;

  RequestTrace(Tracer& tracer, TraceContext context, std::string parent_id, Time begin);

  /// Of the request's span.
  [[nodiscard]] const TraceContext& context() const noexcept { return context_; }
  /// A span of its own below that, for what somebody else is asked.
  [[nodiscard]] TraceContext child() const;

  /// What was done from the end of the stage before to `end`; the first begins with the request.
  void end_stage(std::string name, Time end, Attributes attributes = {});
  /// The part of a request in a batch: its wait, and the batch, which ends with it.
  /// @param number of the batch; 0: there was none.
  void end_batch(std::uint64_t number, double queue_ms, double run_ms, Attributes attributes);
  /// Adds a span that is no stage. @param context of child().
  void add(Span span) const;
  /// Ends the request's own span.
  void end(Span span, Time end);

 private:
  /// Moves the end of the last stage. @return where it was; nothing once the request is over.
  [[nodiscard]] std::optional<Time> advance(Time end);

  Tracer& tracer_;
  const TraceContext context_;
  const std::string parent_id_;
  const Time begin_;
  std::mutex mutex_;  // guards the last two
  Time last_;
  bool is_over_ = false;  // what ends later, for a client that has left, has no spans
};

/// Makes the spans of a server and has them sent. Thread-safe.
class Tracer {
 public:
  /// @param log may be null; outlives this.
  explicit Tracer(const TracingOptions& options, LogSink* log = nullptr);

  /// The trace of a request with these headers, below that of its client if it has one. Where it is
  /// not sampled, it makes no spans, and says so to whom it asks.
  [[nodiscard]] std::shared_ptr<RequestTrace> begin(const Headers& headers, Span::Time time);
  [[nodiscard]] ExportStats stats() const noexcept { return exporter_.stats(); }

 private:
  friend class RequestTrace;

  /// A batch whose requests are still coming in.
  struct Batch {
    Span span;
    Span::Time seen;  ///< its first request
  };

  [[nodiscard]] bool is_sampled(const std::optional<TraceContext>& parent,
                                const std::string& trace_id) const;
  /// Links the span of a request in a batch and that of the batch to each other.
  void link(std::uint64_t number, Span& span);
  /// Hands over batches that no more requests come in for.
  void collect(std::vector<Span>& spans, bool is_last);

  const SamplerOptions sampler_;
  const std::size_t max_batches_;
  std::mutex mutex_;  // guards the next
  std::map<std::uint64_t, Batch> batches_;
  SpanExporter exporter_;  // the last, as its thread uses the others
};

}  // namespace fovea::serve
