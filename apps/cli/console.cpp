// Standard error: one line per message, and a status line that steps aside for messages.
#include "console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>

#include "fovea/error.h"
#include "report/table.h"
#include "report/text.h"

namespace fovea::cli {
namespace {

/// Names that come from a file, or a file given as a flag, may have any length.
std::string bounded_line(std::string_view text) {
  return shortened(one_line(text), kMaxMessageBytes);
}

std::string_view name_of(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return "debug";
    case LogLevel::kInfo: return "info";
    case LogLevel::kWarning: return "warning";
    case LogLevel::kError: return "error";
  }
  return "log";
}

}  // namespace

std::size_t terminal_columns(int descriptor) {
  constexpr std::size_t kUsualColumns = 80;
  winsize size{};
  const bool known = ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : kUsualColumns;
}

std::size_t table_columns() {
  return isatty(STDOUT_FILENO) == 1 ? terminal_columns(STDOUT_FILENO) : Table::kUnbounded;
}

Console::Console() : terminal_(isatty(STDERR_FILENO) == 1) {}

void Console::be_quiet() {
  set_level(LogLevel::kError);
  const std::lock_guard lock(mutex_);
  erase_status();
  terminal_ = false;
  quiet_ = true;
}

void Console::set_level(LogLevel level) {
  const std::lock_guard lock(mutex_);
  if (!quiet_) level_ = level;
}

void Console::write(LogLevel level, std::string_view line) {
  if (!wants(level)) return;
  const std::lock_guard lock(mutex_);
  if (level == LogLevel::kWarning && !warnings_.emplace(line).second) return;
  print(name_of(level), line);
}

void Console::warn(std::string_view text) {
  const std::lock_guard lock(mutex_);
  print("warning", text);
}

void Console::error(std::string_view text) {
  const std::lock_guard lock(mutex_);
  print("error", text);
}

void Console::set_status(std::string_view text) {
  const std::lock_guard lock(mutex_);
  if (!terminal_) return;
  erase_status();
  status_ = one_line(text).substr(0, terminal_columns(STDERR_FILENO) - 1);
  std::fputs(status_.c_str(), stderr);
  std::fflush(stderr);
}

void Console::note_progress(std::string_view text) {
  const std::lock_guard lock(mutex_);
  if (!terminal_ && !quiet_) print("progress", text);
}

void Console::print(std::string_view kind, std::string_view text) {
  erase_status();
  const std::string line = "fovea: " + std::string(kind) + ": " + bounded_line(text) + "\n";
  std::fputs(line.c_str(), stderr);
  std::fflush(stderr);
}

void Console::erase_status() {
  if (status_.empty()) return;
  status_.clear();
  std::fputs("\r\x1b[K", stderr);  // back to the first column, erase to the end of the line
}

}  // namespace fovea::cli
