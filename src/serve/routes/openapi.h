#pragma once

#include "serve/http/router.h"

namespace fovea::serve {

/// GET /openapi.json: the routes of a router as OpenAPI 3.1 describes them, with the parameters of
/// their paths and the form of errors. @param router outlives the route; itself is in it, too.
[[nodiscard]] Route openapi_route(const Router& router);

}  // namespace fovea::serve
