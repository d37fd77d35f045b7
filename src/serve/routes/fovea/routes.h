#pragma once

#include "serve/http/router.h"
#include "serve/routes/encode_call.h"

namespace fovea::serve {

/// POST /v1/encode: the rows of images and videos, in the format that the client asks for.
/// @param encoder outlives the route. Source: docs/serving.md, "POST /v1/encode".
[[nodiscard]] Route encode_route(const Encoder& encoder, const CallLimits& limits);

/// POST /v1/plan: what /v1/encode would make of the same body, without encoding: sizes, grids, rows
/// and how the items are packed. An item may be a size, {"type": "image", "width": 640, "height":
/// 480}; of images no more than the header is read. Videos in containers have to be sizes, because
/// their frames are known once they are decoded: 422 "unsupported_media".
/// @param encoder outlives the route. Source: docs/serving.md, "POST /v1/plan".
[[nodiscard]] Route plan_route(const Encoder& encoder, const CallLimits& limits);

}  // namespace fovea::serve
