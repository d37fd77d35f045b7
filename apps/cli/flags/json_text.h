#pragma once

#include <optional>
#include <string>

#include "core/json.h"
#include "fovea/options.h"

namespace fovea::cli {

/// Parses JSON of the command line or of a request file, in time linear in its length.
/// @param text must outlive the document.
/// @returns nothing if the text is no JSON, larger than 16 MiB, nested deeper than 64 levels, or
/// has more than a million values and keys: nothing can be too deep for whoever walks through the
/// value.
[[nodiscard]] std::optional<JsonDocument> parse_json(const std::string& text);
/// Parses as the function above; returns nothing either if the value is no object.
[[nodiscard]] std::optional<JsonDocument> parse_json_object(const std::string& text);

/// A text that was to be JSON for a message: "<text>", and if it is none, why and where.
[[nodiscard]] std::string shown_json(const std::string& text);

/// The value as JSON for a message, its middle left out if it is long.
[[nodiscard]] std::string shown(const JsonView& value);

/// A text of a user or a file for a message: on one line, its middle left out if it is long.
[[nodiscard]] std::string shown(const std::string& text);

/// Reads the token budgets of graphs: "64,256" or [64, 256] for all paths, or {"global": [272,
/// 544], "local": [100]}, a list for each path named. What `graphs` held of them is forgotten.
/// @param what is complained about.
/// @throws UsageError for text of another form, and for numbers that are no token budgets.
void read_token_budgets(const std::string& text, const std::string& what, GraphOptions& graphs);

}  // namespace fovea::cli
