// Token budgets as a list, for all paths or by path.
#include "flags/token_budgets.h"

#include <optional>

#include "errors.h"
#include "flags/json_text.h"
#include "flags/parse.h"

namespace fovea::cli {
namespace {

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
