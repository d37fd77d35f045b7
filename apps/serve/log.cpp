#include "serve/log.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <optional>
#include <vector>

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

void ServerLog::write(LogLevel level, std::string_view line) {
  if (!wants(level)) return;
  const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(
      std::chrono::system_clock::now().time_since_epoch());
  const std::string text = log_line(format_, now.count(), level, line) + "\n";
  const std::lock_guard lock(mutex_);
  std::fputs(text.c_str(), stderr);
}

}  // namespace fovea::serve
