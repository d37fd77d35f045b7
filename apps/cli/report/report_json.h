#pragma once

#include <string>
#include <vector>

#include "core/json_writer.h"
#include "fovea/engine.h"
#include "fovea/stats.h"

namespace fovea::cli {

/// JSON forms of what the program reports; docs/cli.md lists the keys.
[[nodiscard]] JsonObject to_json(const Stats& stats);
/// Begins with the name of the device, and goes on as the function above.
[[nodiscard]] JsonObject to_json(const ReplicaStats& replica);
[[nodiscard]] JsonObject to_json(const PackingPlan& plan);
[[nodiscard]] JsonObject to_json(const ModelReport& report);

/// Name and milliseconds of each stage of the items that took longest, at most 60: all in their
/// order if there are no more, else the slowest first. Items that failed are left out.
[[nodiscard]] JsonArray slowest_items(const std::vector<Embedding>& items);

/// Text of a JSON file: indented, with a line break at the end; bytes that are not UTF-8 (file
/// names) are replaced.
template <class T>
[[nodiscard]] std::string json_text(const T& value) {
  return json_in_lines(to_json_text(value)) + "\n";
}

}  // namespace fovea::cli
