#include "serve/text/query.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/json_writer.h"
#include "serve/api_error.h"
#include "serve/text/url.h"

namespace fovea::serve {
namespace {

[[noreturn]] void refuse_query(const std::string& problem, const std::string& param) {
  throw ApiError(400, "invalid_value", "query: " + problem, param);
}

/// The text up to a separator, which is taken off the front of `rest` with it.
std::string_view next(std::string_view& rest, char separator) {
  const std::size_t end = std::min(rest.find(separator), rest.size());
  const std::string_view head = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return head;
}

std::string decoded(std::string_view text) {
  std::string spaced(text);
  std::ranges::replace(spaced, '+', ' ');
  const std::optional<std::string> plain = percent_decoded(spaced);
  if (!plain) refuse_query("\"" + shortened(text, 60) + "\" has a % without two digits", "");
  if (!is_utf8(*plain)) refuse_query("\"" + shortened(text, 60) + "\" is no UTF-8", "");
  return *plain;
}

/// An option, or the options whose names begin with its own.
struct Option {
  std::string step;
  std::string json;  ///< its value; empty: it has none
  std::vector<Option> inner;
};

/// The place of a name; makes those on the way there.
Option& place_of(Option& root, const std::string& name) {
  std::string_view rest = name;
  Option* place = &root;
  for (std::size_t depth = 1; !rest.empty(); ++depth) {
    if (depth > kBodyLimits.depth) refuse_query(shortened(name, 60) + " is nested too deep", "");
    const std::string step(next(rest, '.'));
    if (step.empty()) refuse_query("\"" + shortened(name, 60) + "\" is no name of an option", "");
    if (!place->json.empty())
      refuse_query(shortened(name, 60) + " is given twice", shortened(name, 60));
    const auto found = std::ranges::find(place->inner, step, &Option::step);
    place =
        found == place->inner.end() ? &place->inner.emplace_back(Option{.step = step}) : &*found;
  }
  return *place;
}

/// Whether a text spells a number or a truth.
bool is_scalar(const std::string& text) {
  try {
    const JsonDocument document = JsonDocument::parse(text, "option");
    return document.root().is_bool() || document.root().is_number();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCorruptData) throw;
    return false;
  }
}

std::string list_of(std::string_view text) {
  std::string list = "[";
  while (!text.empty()) list += (list.size() > 1 ? "," : "") + json_quote(next(text, ','));
  return list + "]";
}

std::string json_of(const std::string& name, const std::string& text, const QueryTypes& types) {
  if (std::ranges::find(types.lists, name) != types.lists.end()) return list_of(text);
  const bool is_typed = std::ranges::find(types.scalars, name) != types.scalars.end();
  return is_typed && is_scalar(text) ? text : json_quote(text);
}

void write(const Option& option, std::string& out) {
  if (!option.json.empty()) {
    out += option.json;
    return;
  }
  char separator = '{';
  for (const Option& inner : option.inner) {
    out += std::exchange(separator, ',') + json_quote(inner.step) + ":";
    write(inner, out);
  }
  out += separator == '{' ? "{}" : "}";
}

}  // namespace

SharedJson query_object(std::string_view query, const QueryTypes& types) {
  Option root;
  std::size_t options = 0;
  while (!query.empty()) {
    std::string_view value = next(query, '&');
    if (value.empty()) continue;
    if (++options > kMaxQueryOptions)
      refuse_query("more than " + std::to_string(kMaxQueryOptions) + " options", "");
    const std::string name = decoded(next(value, '='));
    if (name.empty() || name.back() == '.')
      refuse_query("\"" + shortened(name, 60) + "\" is no name of an option", "");
    Option& place = place_of(root, name);
    if (!place.json.empty() || !place.inner.empty())
      refuse_query(shortened(name, 60) + " is given twice", shortened(name, 60));
    place.json = json_of(name, decoded(value), types);
  }
  std::string text;
  write(root, text);
  return parse_json_object(std::move(text));
}

}  // namespace fovea::serve
