#pragma once

#include <unistd.h>

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

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

/// The line of a request: everything but queries, headers and bodies, where secrets are.
[[nodiscard]] std::string request_line(const Served& served);

/// The line of a request that the server has failed at: the reason, with paths of the server.
[[nodiscard]] std::string failure_line(const Served& served);

/// The log of a server. Threads that move bytes write to it and never wait: a thread of its
/// own hands the lines on, and where they are read too slowly, those beyond 1 MiB are lost, which a
/// line then says ("log_lost lines=.."). Thread-safe.
class ServerLog final : public LogSink {
 public:
  /// @param descriptor takes the lines; must stay open. @throws Error(kIo) if there is no thread.
  ServerLog(LogFormat format, LogLevel level, int descriptor = STDERR_FILENO);
  /// Waits until all lines are written, or none has been read for a second.
  ~ServerLog() override;
  ServerLog(const ServerLog&) = delete;
  ServerLog& operator=(const ServerLog&) = delete;

  void write(LogLevel level, std::string_view line) noexcept override;
  [[nodiscard]] bool wants(LogLevel level) const noexcept override { return level >= level_; }

 private:
  void run() noexcept;
  /// A line with its end, as of now.
  [[nodiscard]] std::string line_of(LogLevel level, std::string_view line) const;
  void hand_on(std::string_view lines) noexcept;
  [[nodiscard]] bool is_ending() noexcept;

  LogFormat format_;
  LogLevel level_;
  int descriptor_;
  std::mutex mutex_;  // guards the rest
  std::condition_variable changed_;
  std::string lines_;      ///< that wait
  std::int64_t lost_ = 0;  ///< lines
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace fovea::serve
