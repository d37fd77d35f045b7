#pragma once

#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <span>
#include <string>

#include "fovea/planned_item.h"
#include "serve/http/server.h"
#include "serve/media/media_source.h"
#include "serve/metrics/histogram.h"
#include "serve/service/service.h"

namespace fovea::serve {

/// Counts what a server does. Thread-safe. Labels come from fixed sets: patterns of routes, codes
/// of errors, never what a client has typed.
class RequestMetrics {
 public:
  /// A request was answered, or its client left.
  void observe(const Served& served);
  /// A job of the service is complete.
  void observe(const JobReply& reply, std::span<const PlannedItem> items);

  /// The media of a request are there.
  void observe(const MediaCounts& media) noexcept;

  void write(MetricsText& text) const;

 private:
  struct RouteCounts {
    std::map<int, std::int64_t> by_status;
    TimeHistogram durations;
  };
  struct ModalityCounts {
    std::atomic<std::int64_t> ok = 0;
    std::atomic<std::int64_t> failed = 0;
    std::atomic<std::int64_t> rows = 0;
  };

  void write_routes(MetricsText& text) const;
  void write_items(MetricsText& text) const;

  mutable std::mutex mutex_;  // guards the next two maps
  std::map<std::string, RouteCounts, std::less<>> routes_;
  std::map<std::string, std::int64_t, std::less<>> errors_;
  std::atomic<std::int64_t> bytes_in_ = 0;
  std::atomic<std::int64_t> bytes_out_ = 0;
  std::array<ModalityCounts, 2> modalities_;  // by Modality
  static constexpr std::array kMediaSources{"body", "data", "http", "file"};
  std::array<std::atomic<std::int64_t>, kMediaSources.size()> media_bytes_{};
  std::atomic<std::int64_t> frames_ = 0;
  std::atomic<std::int64_t> pixels_ = 0;
  TimeHistogram queue_;
  std::array<TimeHistogram, kStages.size()> stages_;
};

}  // namespace fovea::serve
