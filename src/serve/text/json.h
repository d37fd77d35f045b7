#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/json.h"

namespace fovea::serve {

/// Most of what a body may hold. A conversation has some hundred values, the frames of all videos
/// of a request 8,192; strings may be as long as the body.
inline constexpr JsonLimits kBodyLimits{.bytes = UINT32_MAX,
                                        .values = 100'000,
                                        .depth = 32,
                                        .key_bytes = 1'000,
                                        .string_bytes = UINT32_MAX};

/// JSON that clients have sent, and the bytes that it refers to.
using SharedJson = std::shared_ptr<const JsonDocument>;

/// The JSON object in a body. Costs 32 bytes for each value and key, and as many as the strings
/// have that hold escapes.
/// @param text refers to what `owner` keeps; views of the object refer to it, too.
/// @throws ApiError(400, "invalid_json") with the place for text that is no JSON, is beyond
/// kBodyLimits, holds a key of an object twice, or is no object; Error(kCancelled) or
/// Error(kDeadline) under an Interrupt.
[[nodiscard]] SharedJson parse_json_object(std::string_view text,
                                           std::shared_ptr<const void> owner);

/// As above of a text of its own.
[[nodiscard]] SharedJson parse_json_object(std::string text);

/// Whether text is UTF-8, as JSON needs it.
[[nodiscard]] bool is_utf8(std::string_view text);

/// "items[2]": the path of an element.
[[nodiscard]] std::string element_path(std::string_view list, std::size_t index);

}  // namespace fovea::serve
