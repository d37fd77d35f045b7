#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "serve/text/json.h"
#include "serve/text/object_table.h"

namespace fovea::serve {

/// Most names of a query; routes know some twenty.
inline constexpr std::size_t kMaxQueryOptions = 64;

/// The object that a query stands for: "a=b&c.d=e" is {"a": "b", "c": {"d": "e"}}. '+' is a space.
/// @param query without '?'; empty: an empty object.
/// @param members that are not text, by their names: numbers and truths, of which what reads as
/// none stays text, and lists of texts, with commas between them or given several times. A name
/// that ends with '.' stands for all that begin with it, unless an earlier member has their name.
/// @throws ApiError(400, "invalid_value") for an escape that is none, text that is no UTF-8, a name
/// that is empty, given twice or nested deeper than bodies may be, "a=b&a.c=d", and more than
/// kMaxQueryOptions names.
/// Source: WHATWG URL, "application/x-www-form-urlencoded".
[[nodiscard]] SharedJson query_object(std::string_view query,
                                      std::span<const QueryMember> members = {});

}  // namespace fovea::serve
