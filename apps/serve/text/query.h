#pragma once

#include <string_view>

#include "serve/text/json.h"

namespace fovea::serve {

/// The object that a query stands for, all its values text: "a=b&c.d=e" is {"a": "b", "c": {"d":
/// "e"}}. '+' is a space. @param query without '?'; empty: an empty object.
/// @throws ApiError(400, "invalid_value") for an escape that is none, text that is no UTF-8, a name
/// that is empty, given twice or nested deeper than kMaxJsonDepth, and "a=b&a.c=d".
/// Source: WHATWG URL, "application/x-www-form-urlencoded".
[[nodiscard]] Json query_object(std::string_view query);

}  // namespace fovea::serve
