#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "serve/http/server.h"
#include "serve/service/service.h"

namespace fovea::serve {

/// Notes what a server does while it is profiled: every request, and every job with its wait,
/// its batch and the stages of its items. Costs nothing at other times. Thread-safe.
class Trace {
 public:
  /// @param folder of the files that stop() writes; empty: profiles are refused.
  /// @param max_spans that a profile keeps; further ones are counted alone.
  explicit Trace(std::string folder, std::size_t max_spans = 200'000)
      : folder_(std::move(folder)), max_spans_(max_spans) {}

  /// @throws ApiError(403, "profiling_off") without a folder, ApiError(409, "profile_running").
  void start();
  /// Writes `fovea-<seconds since 1970>-<n>.json` in the trace event format, which Perfetto and
  /// chrome://tracing open.
  /// Source: "Trace Event Format", nestable async events.
  /// @return the name of the file. @throws ApiError(409, "no_profile"), ApiError(507,
  /// "profile_not_written"); the profile has ended then, too.
  std::string stop();

  /// A request was answered, or its client left.
  void observe(const Served& served) noexcept;
  /// A job of the service is complete.
  void observe(const JobReply& reply) noexcept;

 private:
  using Microseconds = std::int64_t;  // of the steady clock
  /// A time in which one thing happened, in the life of something with a number.
  struct Span {
    const char* kind;  // "request" or "job"
    std::int64_t number;
    std::string name;
    Microseconds begin;
    Microseconds end;
    std::string arguments;  // a JSON object
  };

  void add(Span span);
  void add_job(const JobReply& reply);
  [[nodiscard]] std::string text(const std::vector<Span>& spans, std::int64_t dropped) const;

  const std::string folder_;
  const std::size_t max_spans_;
  std::atomic<bool> runs_ = false;
  std::atomic<std::int64_t> numbers_ = 0;
  std::mutex mutex_;  // guards what follows
  std::vector<Span> spans_;
  std::int64_t dropped_ = 0;
  std::int64_t files_ = 0;
};

}  // namespace fovea::serve
