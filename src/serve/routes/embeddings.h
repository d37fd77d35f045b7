#pragma once

#include <vector>

#include "serve/http/router.h"
#include "serve/routes/encode_call.h"

namespace fovea::serve {

/// POST /v1/embeddings and /embeddings, as OpenAI, vLLM and infinity have them, POST /pooling, as
/// vLLM has it, and POST /v2/embed, as Cohere has it for images.
/// @param encoder outlives the routes.
[[nodiscard]] std::vector<Route> embedding_routes(const Encoder& encoder, const CallLimits& limits);

}  // namespace fovea::serve
