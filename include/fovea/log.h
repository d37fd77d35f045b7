#pragma once

#include <string>
#include <string_view>

namespace fovea {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

/// Receives log lines. The library itself never writes to stdout or stderr.
class LogSink {
 public:
  virtual ~LogSink() = default;
  /// Takes one line without a line break: an event name followed by key=value pairs. Called from
  /// several threads, also in the background; must not throw.
  virtual void write(LogLevel level, std::string_view line) = 0;
  /// Whether write() keeps lines of this level. Lines of others are not even formatted, so that
  /// those of every sub-batch cost nothing unless somebody reads them. Called like write().
  [[nodiscard]] virtual bool wants(LogLevel /*level*/) const noexcept { return true; }
};

/// Whether a line of this level is worth formatting.
[[nodiscard]] inline bool is_wanted(const LogSink* sink, LogLevel level) noexcept {
  return sink != nullptr && sink->wants(level);
}

/// Writes to `sink` unless it is null.
inline void log_to(LogSink* sink, LogLevel level, std::string_view line) {
  if (sink != nullptr) sink->write(level, line);
}

}  // namespace fovea
