// JSON with bounds on what a stranger may send.
#include "flags/json_text.h"

#include <cstddef>

#include <optional>
#include "core/json_writer.h"
#include "errors.h"
#include "flags/parse.h"
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

std::int64_t budget_of(const JsonView& value, const std::string& what) {
  const std::int64_t number = value.integer().value_or(0);
  if (number >= 1 && number <= kMaxTokenBudget) return number;
  throw UsageError(what + ": expected " + whole_number_text(1, kMaxTokenBudget) + ", got " +
                   shown(value));
}

std::vector<std::int64_t> list_of(const JsonView& value, const std::string& what) {
  if (!value.is_array()) throw UsageError(what + ": expected a list, got " + shown(value));
  std::vector<std::int64_t> result;
  for (const JsonView& element : value.elements()) result.push_back(budget_of(element, what));
  return result;
}

JsonDocument parsed(const std::string& text, const std::string& what) {
  std::optional<JsonDocument> json = parse_json(text);
  if (json) return std::move(*json);
  throw UsageError(what + ": expected a JSON " + (text.starts_with('[') ? "list" : "object") +
                   ", got " + shown_json(text));
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

void read_token_budgets(const std::string& text, const std::string& what, GraphOptions& graphs) {
  graphs.encoder_cudagraph_token_budgets.clear();
  graphs.encoder_cudagraph_path_token_budgets.clear();
  if (text.starts_with('[')) {
    graphs.encoder_cudagraph_token_budgets = list_of(parsed(text, what).root(), what);
  } else if (text.starts_with('{')) {
    const JsonDocument json = parsed(text, what);
    for (std::size_t i = 0; i < json.root().num_members(); ++i) {
      const std::string path(json.root().key(i));
      graphs.encoder_cudagraph_path_token_budgets[path] =
          list_of(json.root().member(i), std::string(what).append(": ").append(shown(path)));
    }
  } else {
    graphs.encoder_cudagraph_token_budgets = parse_positive_list(text, what, kMaxTokenBudget);
  }
}

}  // namespace fovea::cli
