#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "serve/text/json.h"

namespace fovea::serve {

/// Most names of a query; routes know some twenty.
inline constexpr std::size_t kMaxQueryOptions = 64;

/// Options of a query that are not text, by their whole names: "output.normalize".
struct QueryTypes {
  std::span<const std::string_view> scalars;  ///< numbers and truths; what reads as none stays text
  std::span<const std::string_view> lists;    ///< of texts, with commas between them
};

/// The object that a query stands for: "a=b&c.d=e" is {"a": "b", "c": {"d": "e"}}. '+' is a space.
/// @param query without '?'; empty: an empty object.
/// @throws ApiError(400, "invalid_value") for an escape that is none, text that is no UTF-8, a name
/// that is empty, given twice or nested deeper than bodies may be, "a=b&a.c=d", and more than
/// kMaxQueryOptions names.
/// Source: WHATWG URL, "application/x-www-form-urlencoded".
[[nodiscard]] SharedJson query_object(std::string_view query, const QueryTypes& types = {});

}  // namespace fovea::serve
