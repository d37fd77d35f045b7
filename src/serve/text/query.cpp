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
  bool is_list = false;
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
    if (!place->json.empty())  // "a=b&a.c=d"
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

/// Adds the texts between commas to the JSON of a list, which may be none yet.
void add_to_list(std::string_view text, std::string& list) {
  list = list.empty() ? "[" : list.substr(0, list.size() - 1);
  while (!text.empty()) list += (list.size() > 1 ? "," : "") + json_quote(next(text, ','));
  list += "]";
}

void set_value(const std::string& name, const std::string& text,
               std::span<const QueryMember> members, Option& option) {
  using detail::ValueKind;
  const auto member = std::ranges::find_if(members, [&](const QueryMember& each) {
    return each.name.ends_with('.') ? name.starts_with(each.name) : name == each.name;
  });
  const ValueKind kind = member == members.end() ? ValueKind::kText : member->kind;
  option.is_list = kind == ValueKind::kTexts;
  if (option.is_list) return add_to_list(text, option.json);
  option.json = kind != ValueKind::kText && is_scalar(text) ? text : json_quote(text);
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

SharedJson query_object(std::string_view query, std::span<const QueryMember> members) {
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
    if ((!place.json.empty() && !place.is_list) || !place.inner.empty())
      refuse_query(shortened(name, 60) + " is given twice", shortened(name, 60));
    set_value(name, decoded(value), members, place);
  }
  std::string text;
  write(root, text);
  return parse_json_object(std::move(text));
}

}  // namespace fovea::serve
