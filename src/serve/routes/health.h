#pragma once

#include <vector>

#include "serve/http/router.h"
#include "serve/service/service.h"

namespace fovea::serve {

/// Whether the server lives, is ready, and what it is:
///   GET /livez, /health/live            200 while the process works; 503 when it is stalled
///   GET /readyz, /health/ready, /ping   200 when it takes requests
///   GET /health                         the same, with the state in the body
///   GET /health_generate                encodes a small image: 200 when that worked
///   GET /version, /info
/// Source: docs/serving.md, "Health".
/// @param service must outlive the routes.
[[nodiscard]] std::vector<Route> health_routes(Service& service, std::string build_id);

}  // namespace fovea::serve
