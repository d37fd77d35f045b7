#pragma once

#include <atomic>
#include <mutex>
#include <string>

#include "fovea/log.h"
#include "serve/http/server.h"

namespace fovea::serve {

enum class LogFormat : std::uint8_t {
  kText,  ///< 2026-01-31T10:00:00.123Z info request id=.. status=200
  kJson,  ///< {"time":"2026-01-31T10:00:00.123Z","level":"info","event":"request","id":..}
};

/// A line of the library or of the server as a line of a log, without its end: "event key=value..."
/// becomes fields in JSON; what has another form becomes "message".
/// @param time milliseconds since 1970, UTC.
[[nodiscard]] std::string log_line(LogFormat format, std::int64_t time, LogLevel level,
                                   std::string_view line);

/// What the log says of a request: everything but queries, headers and bodies, where secrets are.
[[nodiscard]] std::string request_line(const Served& served);

/// What the log says of a request that the server has failed at: why, with paths of the server.
[[nodiscard]] std::string failure_line(const Served& served);

/// The log of a server on stderr, a line at a time. Thread-safe.
class ServerLog final : public LogSink {
 public:
  ServerLog(LogFormat format, LogLevel level) : format_(format), level_(level) {}

  void write(LogLevel level, std::string_view line) override;
  [[nodiscard]] bool wants(LogLevel level) const noexcept override { return level >= level_; }

 private:
  LogFormat format_;
  LogLevel level_;
  std::mutex mutex_;  // one line at a time
};

}  // namespace fovea::serve
