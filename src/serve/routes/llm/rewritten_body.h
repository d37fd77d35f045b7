#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/json.h"

namespace fovea::serve {

/// A part of a conversation that is replaced.
struct ReplacedPart {
  std::string param;  ///< where it stands, as MediaPart::param: "messages[0].content[1]"
  std::string json;   ///< the part in its place
};

/// A chat request with some of the parts of its `messages` replaced: the same members with the same
/// values, in the same order, on one line. @param parts in the order in which they stand there;
/// each has its place. @param left_out members of the request that are not written.
/// @throws Error(kInternal) if a part has no place.
[[nodiscard]] std::string rewritten_body(const JsonView& body, std::vector<ReplacedPart> parts,
                                         std::span<const std::string_view> left_out = {});

}  // namespace fovea::serve
