#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "core/json_writer.h"

namespace fovea::test {

/// JSON by a library that shares nothing with ours: what tests send, and how they read what we
/// write.
using Json = nlohmann::ordered_json;

inline std::string to_text(const Json& json) { return json.dump(); }

/// What our writer has written, read again.
template <class T>
[[nodiscard]] Json read_again(const T& written) {
  return Json::parse(to_json_text(written));
}

}  // namespace fovea::test
