#pragma once

#include "serve/http/router.h"
#include "serve/routes/encode_call.h"

namespace fovea::serve {

/// POST /v2/embed with `images`, a list of URLs, or `inputs`, a list of contents with one image or
/// video each: one vector each, the mean of its rows at L2 norm 1, as `float` or `base64`. Texts
/// and quantised types are refused. Source: Cohere, API reference, "Embed (V2)".
[[nodiscard]] Route embed_route(const Encoder& encoder, const CallLimits& limits);

}  // namespace fovea::serve
