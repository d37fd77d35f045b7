#pragma once

#include <vector>

#include "serve/http/router.h"
#include "serve/metrics/trace.h"

namespace fovea::serve {

/// POST /start_profile, and POST /stop_profile, which answers with the name of the file that it
/// has written. Source: vLLM, `vllm/entrypoints/serve/profile/api_router.py`.
/// @param service writes on its threads. Both must outlive the routes.
[[nodiscard]] std::vector<Route> profile_routes(Service& service, Trace& trace);

}  // namespace fovea::serve
