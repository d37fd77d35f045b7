#pragma once

#include <vector>

#include "serve/http/router.h"
#include "serve/routes/encode_call.h"

namespace fovea::serve {

/// POST /v1/embeddings and /embeddings, as OpenAI, vLLM and infinity have them, and POST /pooling,
/// as vLLM has it.
/// @param encoder outlives the routes.
[[nodiscard]] std::vector<Route> embedding_routes(const Encoder& encoder, const CallLimits& limits);

/// GET /v1/models, /models and /v1/models/{id}, as OpenAI has them; an id may hold one '/'.
/// Answered while the model is being loaded, too. @param service outlives the routes.
[[nodiscard]] std::vector<Route> model_routes(const Service& service);

}  // namespace fovea::serve
