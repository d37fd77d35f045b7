// One line about every sub-batch, for people who tune budgets.
#include "graph/batch_log.h"

#include <cmath>

#include "core/check.h"
#include "graph/sized_forward.h"

namespace fovea {

namespace {

/// With one decimal.
double percent(std::int64_t part, std::int64_t whole) {
  return std::round(1000.0 * static_cast<double>(part) / static_cast<double>(whole)) / 10.0;
}

}  // namespace

BatchLog::BatchLog(const GraphSpec& spec, std::string_view device, LogSink* sink)
    : device_(device), sink_(sink) {
  for (const PathSpec& path : spec.paths) path_names_.push_back(path.name);
}

std::string BatchLog::place(PathId path) const {
  return cat("device=", device_, " sub_batch=", sub_batch_,
             " path=", path_names_[static_cast<std::size_t>(path)]);
}

void BatchLog::replayed(PathId path, std::span<const ItemPart> parts, std::int64_t budget,
                        std::int64_t capacity) const {
  if (!is_wanted(sink_, LogLevel::kDebug)) return;
  const GraphCapacity load = exact_capacity(parts);
  const std::int64_t waste = capacity - load.tokens;
  sink_->write(LogLevel::kDebug, cat("encoder_graphs.replay ", place(path), " items=", load.items,
                                     " tokens=", load.tokens, " budget=", budget, " waste=", waste,
                                     " waste_percent=", percent(waste, capacity)));
}

void BatchLog::ran_eagerly(PathId path, std::span<const ItemPart> parts, MissReason reason) const {
  if (!is_wanted(sink_, LogLevel::kDebug)) return;
  const GraphCapacity load = exact_capacity(parts);
  sink_->write(LogLevel::kDebug,
               cat("encoder_graphs.eager ", place(path), " reason=", to_string(reason),
                   " items=", load.items, " tokens=", load.tokens));
}

}  // namespace fovea
