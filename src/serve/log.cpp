#include "serve/log.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cstdio>
#include <ctime>
#include <new>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "core/blocked_signals.h"
#include "core/check.h"
#include "core/json_writer.h"
#include "fovea/text.h"

namespace fovea::serve {
namespace {

constexpr std::int64_t kMsPerSecond = 1000;

const char* name_of(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return "debug";
    case LogLevel::kInfo: return "info";
    case LogLevel::kWarning: return "warning";
    case LogLevel::kError: return "error";
  }
  return "error";
}

/// Source: RFC 3339, section 5.6.
std::string time_text(std::int64_t time) {
  const std::time_t seconds = time / kMsPerSecond;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  std::array<char, 32> text{};
  const std::size_t size = std::strftime(text.data(), text.size(), "%FT%T", &parts);
  std::array<char, 8> fraction{};
  std::snprintf(fraction.data(), fraction.size(), ".%03dZ", static_cast<int>(time % kMsPerSecond));
  return std::string(text.data(), size) + fraction.data();
}

bool is_key(std::string_view text) {
  return !text.empty() &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string_view::npos;
}

/// The fields of "event key=value key=value"; nothing if the line has another form, or a key that
/// is taken.
std::optional<JsonObject> fields_of(std::string_view line) {
  JsonObject fields;
  std::vector<std::string_view> taken{"time", "level", "event"};
  for (bool is_event = true; is_event || !line.empty(); is_event = false) {
    const std::string_view word = line.substr(0, line.find(' '));
    line.remove_prefix(std::min(word.size() + 1, line.size()));
    const std::string_view key = word.substr(0, word.find('='));
    if (!is_key(key) || (key.size() == word.size()) != is_event) return std::nullopt;
    if (is_event) {
      fields.set("event", word);
    } else {
      if (std::ranges::find(taken, key) != taken.end()) return std::nullopt;
      taken.push_back(key);
      fields.set(key, word.substr(key.size() + 1));
    }
  }
  return fields;
}

}  // namespace

std::string log_line(LogFormat format, std::int64_t time, LogLevel level, std::string_view line) {
  const std::string safe = printable(line);  // or a client could write lines of its own
  if (format == LogFormat::kText) {
    return time_text(time) + " " + name_of(level) + " " + safe;
  }
  JsonObject json{{"time", time_text(time)}, {"level", name_of(level)}};
  if (const std::optional<JsonObject> fields = fields_of(safe)) {
    json.merge(*fields);
  } else {
    json.set("message", safe);
  }
  return to_json_text(json);
}

std::string request_line(const Served& served) {
  std::array<char, 32> ms{};
  std::snprintf(ms.data(), ms.size(), "%.1f", served.duration.count() * kMsPerSecond);
  std::string line = "request id=" + served.head.id;
  // Spaces would begin another field.
  std::string path = served.head.path;
  for (char& character : path) character = character == ' ' ? '+' : character;
  line += " peer=" + served.head.peer + " method=" + served.head.method + " path=" + path;
  line += " status=" + std::to_string(served.status) + " ms=" + ms.data();
  line += " in=" + std::to_string(served.bytes_in) + " out=" + std::to_string(served.bytes_out);
  if (!served.error_code.empty()) line += " error=" + std::string(served.error_code);
  return line;
}

std::string failure_line(const Served& served) {
  return "request " + served.head.id + " failed: " + std::string(served.error_detail);
}

ServerLog::ServerLog(LogFormat format, LogLevel level, int descriptor)
    : format_(format), level_(level), descriptor_(descriptor) {
  const BlockedSignals none;
  try {
    thread_ = std::thread([this] { run(); });
  } catch (const std::system_error& error) {
    throw Error(ErrorCode::kIo, cat("a thread of the log: ", error.what()));
  }
}

ServerLog::~ServerLog() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

std::string ServerLog::line_of(LogLevel level, std::string_view line) const {
  const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::system_clock::now().time_since_epoch());
  return log_line(format_, now.count(), level, line) + "\n";
}

void ServerLog::write(LogLevel level, std::string_view line) noexcept {
  constexpr std::size_t kMostBytes = std::size_t{1} << 20;
  if (!wants(level)) return;
  bool is_kept = false;
  std::unique_lock lock(mutex_, std::defer_lock);
  try {
    const std::string text = line_of(level, line);
    lock.lock();
    is_kept = lines_.size() + text.size() <= kMostBytes;
    if (is_kept) lines_ += text;
  } catch (const std::exception&) {
    is_kept = false;  // there is no memory for it
  }
  if (!lock) lock.lock();
  if (!is_kept) ++lost_;
  lock.unlock();
  changed_.notify_one();
}

void ServerLog::run() noexcept {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ends_ || lost_ > 0 || !lines_.empty(); });
    if (lost_ == 0 && lines_.empty()) return;
    const std::string lines = std::exchange(lines_, {});
    const std::int64_t lost = std::exchange(lost_, 0);
    lock.unlock();
    hand_on(lines);
    try {
      if (lost > 0) hand_on(line_of(LogLevel::kWarning, cat("log_lost lines=", lost)));
    } catch (const std::exception&) {  // NOLINT: nor is there memory for that
    }
    lock.lock();
  }
}

/// A pipe that is ready takes PIPE_BUF bytes without a wait.
void ServerLog::hand_on(std::string_view lines) noexcept {
  constexpr int kPatienceMs = 1000;
  while (!lines.empty()) {
    pollfd entry{descriptor_, POLLOUT, 0};
    const int ready = poll(&entry, 1, kPatienceMs);
    if (ready < 0 && errno != EINTR) return;
    if (ready == 0 && is_ending()) return;  // no lines are read, and the server ends
    if (ready <= 0) continue;
    const ssize_t done =
        ::write(descriptor_, lines.data(), std::min<std::size_t>(lines.size(), PIPE_BUF));
    if (done < 0 && errno != EINTR && errno != EAGAIN) return;  // there is no reader any more
    lines.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(done, 0)));
  }
}

bool ServerLog::is_ending() noexcept {
  const std::lock_guard lock(mutex_);
  return ends_;
}

}  // namespace fovea::serve
