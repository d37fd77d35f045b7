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
#include "serve/tracing/tracer.h"

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

/// "encoder_graphs.captured", "ready", "budgets.default".
bool is_dotted(std::string_view text) {
  return is_key(text.substr(0, text.find('.'))) && !text.ends_with('.') &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_.") == text.npos;
}

/// Fields that clients fill. A quote in them is theirs.
constexpr std::array<std::string_view, 4> kClientKeys{"id", "peer", "method", "path"};
/// Fields of text, also where that spells a number: names, most of which others have chosen.
constexpr std::array<std::string_view, 16> kTextKeys{
    "id",    "peer", "method",  "path", "model",  "address", "url",          "reason",
    "error", "name", "message", "item", "family", "device",  "architecture", "trace_id"};

/// "-12.5", as JSON spells it. Source: RFC 8259, section 6.
bool is_number(std::string_view text) {
  constexpr std::size_t kMostDigits = 20;
  constexpr std::string_view kDigits = "0123456789";
  if (text.starts_with('-')) text.remove_prefix(1);
  const std::string_view whole = text.substr(0, text.find('.'));
  const bool has_zeros = whole.size() > 1 && whole.front() == '0';
  if (whole.empty() || has_zeros || text.size() > kMostDigits || text.ends_with('.')) return false;
  text.remove_prefix(std::min(whole.size() + 1, text.size()));
  return whole.find_first_not_of(kDigits) == std::string_view::npos &&
         text.find_first_not_of(kDigits) == std::string_view::npos;
}

/// A number, as it stands in the line.
struct PlainNumber {
  std::string_view text;
  void append_to(std::string& out) const { out += text; }
};

void set_field(JsonObject& fields, std::string_view key, std::string_view value) {
  const bool is_text = std::ranges::find(kTextKeys, key) != kTextKeys.end();
  if (!is_text && is_number(value)) {
    fields.set(key, PlainNumber{value});
  } else {
    fields.set(key, value);
  }
}

/// The value at the beginning of a line, which loses it and the space behind it. One with spaces
/// stands in quotes. @param is_quoted whether it may, then whether it does.
std::string_view take_value(std::string_view& line, bool& is_quoted) {
  const bool has_begin = is_quoted && line.starts_with('"');
  const std::size_t end = has_begin ? line.find('"', 1) : line.npos;
  const bool has_end = end != line.npos && (end + 1 == line.size() || line[end + 1] == ' ');
  is_quoted = has_end;
  const std::string_view value = has_end ? line.substr(1, end - 1) : line.substr(0, line.find(' '));
  line.remove_prefix(std::min(value.size() + (has_end ? 3 : 1), line.size()));
  return value;
}

/// The fields of "event key=value key="a value""; nothing if the line has another form, or a key
/// that is taken.
std::optional<JsonObject> fields_of(std::string_view line) {
  const std::string_view event = line.substr(0, line.find(' '));
  if (event.find('=') != event.npos || !is_dotted(event)) return std::nullopt;
  line.remove_prefix(std::min(event.size() + 1, line.size()));
  JsonObject fields{{"event", event}};
  std::vector<std::string_view> taken{"time", "level", "event"};
  while (!line.empty()) {
    const std::string_view key = line.substr(0, line.find_first_of("= "));
    if (!is_dotted(key) || line.substr(key.size(), 1) != "=") return std::nullopt;
    if (std::ranges::find(taken, key) != taken.end()) return std::nullopt;
    taken.push_back(key);
    line.remove_prefix(key.size() + 1);
    bool is_quoted = std::ranges::find(kClientKeys, key) == kClientKeys.end();
    const std::string_view value = take_value(line, is_quoted);
    if (is_quoted) {
      fields.set(key, value);
    } else {
      set_field(fields, key, value);
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
  if (served.head.trace) line += " trace_id=" + served.head.trace->context().trace_id;
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
