#pragma once

#include <string>
#include <string_view>

namespace fovea {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

/// Where log lines go. The library never writes to stdout or stderr by itself.
class LogSink {
 public:
  virtual ~LogSink() = default;
  /// Takes one line without a line break: an event name followed by key=value pairs. Thread-safe.
  virtual void write(LogLevel level, std::string_view line) = 0;
};

/// Writes to `sink` unless it is null.
inline void log_to(LogSink* sink, LogLevel level, std::string_view line) {
  if (sink != nullptr) sink->write(level, line);
}

}  // namespace fovea
