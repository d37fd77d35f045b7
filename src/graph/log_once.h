#pragma once

#include <set>
#include <string>

#include "fovea/log.h"

namespace fovea {

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
