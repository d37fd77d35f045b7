#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "fovea/engine.h"
#include "fovea/stats.h"

namespace fovea::cli {

/// JSON forms of what the program reports; docs/cli.md lists the keys.
[[nodiscard]] nlohmann::ordered_json to_json(const Stats& stats);
/// As above with the name of the device in front.
[[nodiscard]] nlohmann::ordered_json to_json(const ReplicaStats& replica);
[[nodiscard]] nlohmann::ordered_json to_json(const PackingPlan& plan);
[[nodiscard]] nlohmann::ordered_json to_json(const ModelReport& report);

/// Text of a JSON file: indented, with a line break at the end; bytes that are not UTF-8 (file
/// names) are replaced.
[[nodiscard]] std::string json_text(const nlohmann::ordered_json& value);

}  // namespace fovea::cli
