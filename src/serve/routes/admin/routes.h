#pragma once

#include <functional>
#include <string>
#include <vector>

#include "serve/http/router.h"
#include "serve/http/server.h"
#include "serve/metrics/request_metrics.h"
#include "serve/metrics/trace.h"
#include "serve/service/admission.h"
#include "serve/service/service.h"
#include "serve/tracing/tracer.h"
#include "serve/upstream/forwarder.h"

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

/// The sources that GET /metrics reads. All of them must outlive the route.
struct MetricsSources {
  const Service* service = nullptr;
  const Admission* admission = nullptr;
  const RequestMetrics* requests = nullptr;
  const Forwarder* forwarder = nullptr;  ///< of a proxy
  const Tracer* tracer = nullptr;        ///< where requests are traced
  std::function<HttpStats()> http;
  std::string build_id;
};

/// GET /metrics: everything that is counted, in Prometheus' text format 0.0.4. Waits for nothing.
[[nodiscard]] Route metrics_route(MetricsSources sources);

/// GET /openapi.json: the routes of a router as OpenAPI 3.1 describes them, with their parameters,
/// the schemas of bodies and replies, and the form of errors: what RouteText says. @param router
/// outlives the route; itself is in it, too.
[[nodiscard]] Route openapi_route(const Router& router);

/// POST /start_profile, and POST /stop_profile, which answers with the name of the file that it
/// has written. Source: vLLM, `vllm/entrypoints/serve/profile/api_router.py`.
/// @param service writes on its threads. Both must outlive the routes.
[[nodiscard]] std::vector<Route> profile_routes(Service& service, Trace& trace);

/// GET /: a page that encodes a picture of the reader, shows the lengths of its rows over it, and
/// the counters of the server. GET /docs: a page with the routes of /openapi.json. Each is one file
/// without parts from elsewhere, and talks to this server only: its Content-Security-Policy lets
/// nothing else run or load.
[[nodiscard]] std::vector<Route> page_routes();

}  // namespace fovea::serve
