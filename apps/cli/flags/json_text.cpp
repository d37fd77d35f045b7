// JSON with bounds on what a stranger may send.
#include "flags/json_text.h"

#include <cstddef>

#include "core/json_writer.h"
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

constexpr std::string_view kName = "flag";

/// @throws Error(kCorruptData) for what is no JSON, or beyond the limits.
JsonDocument parse(const std::string& text) {
  return JsonDocument::parse_borrowed(text, std::string(kName),
                                      {.non_finite = false, .limits = kLimits});
}

/// Why a text is no JSON, or beyond the limits, and where; empty if it is neither.
std::string problem_of(const std::string& text) {
  try {
    (void)parse(text);
    return "";
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCorruptData) throw;
    return std::string(error.what()).substr(kName.size() + 2);
  }
}

}  // namespace

std::optional<JsonDocument> parse_json(const std::string& text) {
  try {
    return parse(text);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCorruptData) throw;
    return std::nullopt;
  }
}

std::optional<JsonDocument> parse_json_object(const std::string& text) {
  std::optional<JsonDocument> json = parse_json(text);
  if (json && !json->root().is_object()) json.reset();
  return json;
}

std::string shown_json(const std::string& text) {
  if (text.empty()) return "an empty text";
  if (text.size() > kLimits.bytes) return bytes_text(text.size());
  const std::string problem = problem_of(text);
  return problem.empty() ? shown(text) : shown(text) + " (" + problem + ")";
}

std::string shown(const JsonView& value) { return shown(to_json_text(value)); }

std::string shown(const std::string& text) { return shortened(one_line(text), kMaxShownBytes); }

}  // namespace fovea::cli
