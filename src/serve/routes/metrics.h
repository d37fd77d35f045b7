#pragma once

#include <functional>
#include <string>

#include "serve/http/router.h"
#include "serve/metrics/request_metrics.h"
#include "serve/service/admission.h"
#include "serve/service/service.h"

namespace fovea::serve {

/// What GET /metrics reads. All of it must outlive the route.
struct MetricsSources {
  const Service* service = nullptr;
  const Admission* admission = nullptr;
  const RequestMetrics* requests = nullptr;
  std::function<HttpStats()> http;
  std::string build_id;
};

/// GET /metrics: everything that is counted, in Prometheus' text format 0.0.4. Waits for nothing.
[[nodiscard]] Route metrics_route(MetricsSources sources);

}  // namespace fovea::serve
