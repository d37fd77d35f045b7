#pragma once

#include <vector>

#include "serve/http/router.h"
#include "serve/service/service.h"

namespace fovea::serve {

/// GET /v1/models, /models and /v1/models/{id}, as OpenAI has them; an id may hold one '/'.
/// Answered while the model is being loaded, too. @param service outlives the routes.
[[nodiscard]] std::vector<Route> model_routes(const Service& service);

}  // namespace fovea::serve
