#pragma once

#include <algorithm>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/log.h"

namespace fovea::test {

/// Keeps what is logged, by any number of threads. Read it when they are done.
class RecordingLog final : public LogSink {
 public:
  /// @param level of the least severe lines that it wants. What it gets is kept, wanted or not.
  explicit RecordingLog(LogLevel level = LogLevel::kDebug) noexcept : level_(level) {}

  [[nodiscard]] bool wants(LogLevel level) const noexcept override { return level >= level_; }
  void write(LogLevel level, std::string_view line) override {
    const std::lock_guard lock(mutex_);
    lines.emplace_back(level, line);
  }

  [[nodiscard]] std::ptrdiff_t count(std::string_view part) const {
    return std::count_if(lines.begin(), lines.end(), [&](const auto& entry) {
      return entry.second.find(part) != std::string::npos;
    });
  }

  std::vector<std::pair<LogLevel, std::string>> lines;

 private:
  LogLevel level_;
  std::mutex mutex_;
};

}  // namespace fovea::test
