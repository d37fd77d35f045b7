#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace fovea::test {

/// JSON by a library that shares nothing with ours: what tests send, and how they read what we
/// write.
using Json = nlohmann::ordered_json;

inline std::string to_text(const Json& json) { return json.dump(); }

}  // namespace fovea::test
