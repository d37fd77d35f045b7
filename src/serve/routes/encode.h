#pragma once

#include "serve/http/router.h"
#include "serve/routes/encode_call.h"

namespace fovea::serve {

/// POST /v1/encode: the rows of images and videos, in the format that the client asks for.
/// @param encoder outlives the route. Source: docs/serving.md, "POST /v1/encode".
[[nodiscard]] Route encode_route(const Encoder& encoder, const CallLimits& limits);

}  // namespace fovea::serve
