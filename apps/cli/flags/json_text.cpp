// JSON with bounds on what a stranger may send.
#include "flags/json_text.h"

#include <cstddef>

#include "core/json.h"
#include "fovea/error.h"
#include "report/text.h"

namespace fovea::cli {
namespace {

constexpr std::size_t kMaxShownBytes = 60;
constexpr JsonLimits kLimits{.bytes = std::size_t{16} << 20,
                             .values = 1'000'000,
                             .depth = 64,
                             .key_bytes = 1'000,
                             .string_bytes = std::size_t{16} << 20};

/// Why a text is no JSON, or beyond the limits, and where; empty if it is neither.
std::string problem_of(const std::string& text) {
  constexpr std::string_view kName = "flag";
  try {
    (void)JsonDocument::parse_borrowed(text, std::string(kName),
                                       {.non_finite = false, .limits = kLimits});
    return "";
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCorruptData) throw;
    return std::string(error.what()).substr(kName.size() + 2);
  }
}

}  // namespace

nlohmann::json parse_json(const std::string& text) {
  // The parser of the library has no limits, and with a callback it is quadratic.
  return nlohmann::json::parse(problem_of(text).empty() ? text : "", nullptr,
                               /*allow_exceptions=*/false);
}

std::string shown_json(const std::string& text) {
  if (text.empty()) return "an empty text";
  if (text.size() > kLimits.bytes) return bytes_text(text.size());
  const std::string problem = problem_of(text);
  return problem.empty() ? shown(text) : shown(text) + " (" + problem + ")";
}

std::string shown(const nlohmann::json& value) {
  return shown(value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

std::string shown(const std::string& text) { return shortened(one_line(text), kMaxShownBytes); }

}  // namespace fovea::cli
