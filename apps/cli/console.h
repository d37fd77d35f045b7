#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "fovea/log.h"

namespace fovea::cli {

/// Columns of the terminal that a descriptor is open on; 80 if it is none.
[[nodiscard]] std::size_t terminal_columns(int descriptor);

/// Columns for a table on stdout: those of the terminal, or no bound, so that a line of a file or
/// of a pipe is a row.
[[nodiscard]] std::size_t table_columns();

/// The standard error of the program: log lines of the library, warnings, the final error, and one
/// status line that is shown on a terminal only and never mixes with the others. Thread-safe.
class Console final : public LogSink {
 public:
  Console();

  /// Hides the status line and all log lines except errors, whatever level is set before or after.
  void be_quiet();
  /// Log lines below `level` are dropped. Warnings and errors of the program itself always appear.
  void set_level(LogLevel level);

  /// Writes `fovea: <level>: <line>`, made one line. A warning of the library is written once, even
  /// if several engines of a benchmark give it.
  void write(LogLevel level, std::string_view line) override;
  [[nodiscard]] bool wants(LogLevel level) const noexcept override { return level >= level_; }
  void warn(std::string_view text);
  void error(std::string_view text);

  /// Replaces the status line; the empty text removes it.
  void set_status(std::string_view text);
  /// Writes a plain line "fovea: progress: ..." where there is no status line, because stderr is no
  /// terminal; not if quiet.
  void note_progress(std::string_view text);

 private:
  void print(std::string_view kind, std::string_view text);
  void erase_status();

  std::atomic<LogLevel> level_ = LogLevel::kWarning;
  std::mutex mutex_;  // guards the members below and the stream
  bool quiet_ = false;
  bool terminal_ = false;
  std::string status_;
  std::set<std::string, std::less<>> warnings_;  // of the library that were written
};

}  // namespace fovea::cli
