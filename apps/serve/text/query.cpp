#include "serve/text/query.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "serve/api_error.h"
#include "serve/text/percent.h"

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

/// The place of a name in the object; makes the objects on the way there.
Json& place_of(Json& object, const std::string& name) {
  std::string_view rest = name;
  Json* place = &object;
  for (int depth = 1; !rest.empty(); ++depth) {
    if (depth > kMaxJsonDepth) refuse_query(shortened(name, 60) + " is nested too deep", "");
    const std::string step(next(rest, '.'));
    if (step.empty()) refuse_query("\"" + shortened(name, 60) + "\" is no name of an option", "");
    if (!place->is_null() && !place->is_object())
      refuse_query(shortened(name, 60) + " is given twice", shortened(name, 60));
    place = &(*place)[step];
  }
  return *place;
}

}  // namespace

Json query_object(std::string_view query) {
  Json object = Json::object();
  while (!query.empty()) {
    std::string_view value = next(query, '&');
    if (value.empty()) continue;
    const std::string name = decoded(next(value, '='));
    if (name.empty() || name.back() == '.')
      refuse_query("\"" + shortened(name, 60) + "\" is no name of an option", "");
    Json& place = place_of(object, name);
    if (!place.is_null())
      refuse_query(shortened(name, 60) + " is given twice", shortened(name, 60));
    place = decoded(value);
  }
  return object;
}

}  // namespace fovea::serve
