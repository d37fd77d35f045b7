#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/log.h"
#include "fovea/tower/models/encoder_graph_model.h"
#include "graph/graph_stats.h"

namespace fovea {

/// Debug lines about how the sub-batches of one manager ran: one per path that has tokens. Formats
/// nothing unless the sink wants them. Not thread-safe.
class BatchLog {
 public:
  /// @param device name of the manager's device. @param sink must outlive this object; null:
  /// silence.
  BatchLog(const GraphSpec& spec, std::string_view device, LogSink* sink);

  /// The lines that follow are about the next sub-batch.
  void begin() noexcept { ++sub_batch_; }
  /// Parts of a path were replayed in the graph of `budget`, which holds `capacity` tokens.
  void replayed(PathId path, std::span<const ItemPart> parts, std::int64_t budget,
                std::int64_t capacity) const;
  /// They ran eagerly.
  void ran_eagerly(PathId path, std::span<const ItemPart> parts, MissReason reason) const;

 private:
  /// "device=cpu sub_batch=1 path=default".
  [[nodiscard]] std::string place(PathId path) const;

  std::vector<std::string> path_names_;
  std::string device_;
  LogSink* sink_;
  std::int64_t sub_batch_ = 0;  // from 1 on
};

/// Warnings, each of which is written once. Not thread-safe.
class LogOnce {
 public:
  /// @param sink must outlive this object; null: silence.
  explicit LogOnce(LogSink* sink) noexcept : sink_(sink) {}

  void warn(const std::string& line) {
    if (sink_ != nullptr && written_.insert(line).second) {
      sink_->write(LogLevel::kWarning, line);
    }
  }

 private:
  LogSink* sink_;
  std::set<std::string> written_;
};

}  // namespace fovea
