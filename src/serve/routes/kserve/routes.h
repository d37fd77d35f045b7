#pragma once

#include <vector>

#include "serve/http/router.h"
#include "serve/routes/encode_call.h"

namespace fovea::serve {

/// The HTTP routes of the Open Inference Protocol, version 2, as KServe and Triton have them: GET
/// /v2, /v2/health/live, /v2/health/ready, /v2/models/{m} with /ready and /stats, POST
/// /v2/models/{m}/infer with the binary extension; models also as .../versions/1.
/// @param encoder outlives the routes.
/// Source: kserve/open-inference-protocol, specification/protocol/inference_rest.md; Triton
/// Inference Server, docs/protocol/extension_statistics.md.
[[nodiscard]] std::vector<Route> kserve_routes(const Encoder& encoder, const CallLimits& limits);

}  // namespace fovea::serve
