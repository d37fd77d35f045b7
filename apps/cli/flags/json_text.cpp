// JSON with bounds on what a stranger may send.
#include "flags/json_text.h"

#include <cstddef>

#include "fovea/error.h"
#include "report/text.h"

namespace fovea::cli {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{16} << 20;
constexpr int kMaxDepth = 64;
constexpr std::size_t kMaxShownBytes = 60;

nlohmann::json parse(const std::string& text, bool allow_exceptions) {
  using Event = nlohmann::json::parse_event_t;
  const auto keep = [](int depth, Event /*event*/, const nlohmann::json& /*value*/) {
    return depth < kMaxDepth;
  };
  return nlohmann::json::parse(text, keep, allow_exceptions);
}

}  // namespace

nlohmann::json parse_json(const std::string& text) {
  return parse(text.size() > kMaxBytes ? "" : text, /*allow_exceptions=*/false);
}

std::string shown_json(const std::string& text) try {
  if (text.empty()) return "an empty text";
  if (text.size() > kMaxBytes) return bytes_text(text.size());
  (void)parse(text, /*allow_exceptions=*/true);
  return shown(text);
} catch (const nlohmann::json::parse_error& error) {
  if (error.byte > text.size()) return shown(text) + ", which ends too early";
  return shown(text) + ", which is no JSON from character " + std::to_string(error.byte) + " on";
}

std::string shown(const nlohmann::json& value) {
  return shown(value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

std::string shown(const std::string& text) { return shortened(one_line(text), kMaxShownBytes); }

}  // namespace fovea::cli
