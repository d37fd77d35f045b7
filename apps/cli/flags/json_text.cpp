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

}  // namespace

nlohmann::json parse_json(const std::string& text) {
  using Event = nlohmann::json::parse_event_t;
  const auto keep = [](int depth, Event /*event*/, const nlohmann::json& /*value*/) {
    return depth < kMaxDepth;
  };
  return nlohmann::json::parse(text.size() > kMaxBytes ? "" : text, keep,
                               /*allow_exceptions=*/false);
}

std::string shown(const nlohmann::json& value) {
  return shown(value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

std::string shown(const std::string& text) { return shortened(one_line(text), kMaxShownBytes); }

}  // namespace fovea::cli
