#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fovea::serve {

/// The two halves of what stands behind the method.
struct Target {
  std::string path;   ///< percent-decoded, once
  std::string query;  ///< as it came, without '?'
};

/// @param target in origin form ("/path?query"); that of proxies ("http://host/path") is refused.
/// @throws ApiError(400, "invalid_request") for other forms, escapes that are none, characters that
/// have no place there, and paths with control characters. Source: RFC 9112, 3.2.1.
[[nodiscard]] Target split_target(std::string_view target);

/// The path below the root path: "/v1" of "/api/v1" for the root "/api". Nothing for paths outside.
/// @param root "/api", or empty.
[[nodiscard]] std::optional<std::string_view> below_root(std::string_view path,
                                                         std::string_view root);

}  // namespace fovea::serve
