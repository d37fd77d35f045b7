#include "serve/routes/admin/routes.h"

#include <utility>

#include "fovea/option_table.h"
#include "fovea/option_text.h"
#include "fovea/version.h"
#include "serve/api_error.h"
#include "serve/http/message.h"
#include "serve/routes/encode_call.h"

namespace fovea::serve {
namespace {

constexpr int kUnavailable = 503;

Reply health(const Service& service) {
  const ServiceState state = service.state();
  if (state == ServiceState::kReady) return json_reply({{"status", "ok"}});
  return json_reply({{"status", to_string(state)}}, kUnavailable);
}

/// A model that loads, or a server that ends its work, lives.
Reply liveness(const Service& service) {
  const bool lives = service.state() != ServiceState::kUnhealthy;
  return json_reply({{"live", lives}}, lives ? 200 : kUnavailable);
}

JsonObject limits_json(const ServiceOptions& options, const MediaLimits& media) {
  JsonObject limits{{"max_queue_items", options.batcher.max_items},
                    {"max_inflight_bytes", options.max_inflight_bytes}};
  add_options(limits, media);
  return limits;
}

/// The options that the engine encodes with, the limits of the loaded model included. Paths are
/// "***", as the secrets of --print-config.
JsonObject options_json(EngineOptions options, const ServedModel& model) {
  options.media = model.media;
  JsonObject json;
  for_each_option(options, [&](const auto& option, const auto& value) {
    if (option.facts.is_path && !option_text(value).empty()) {
      json.set(option.name, "***");
    } else {
      json.set(option.name, plain_value(value));
    }
  });
  return json;
}

Reply info(const Service& service, const std::string& build_id) {
  const ServedModel& model = service.model();
  const ModelReport& report = model.report;
  return json_reply({{"model", service.options().served_name},
                     {"architecture", report.architecture},
                     {"family", report.family},
                     {"dtype", value_name(model.dtype)},
                     {"hidden", report.hidden},
                     {"deepstack_levels", report.deepstack_levels},
                     {"width", report.width},
                     {"images", report.images},
                     {"videos", report.videos},
                     {"facts", report.facts},
                     {"fingerprint", model.fingerprint},
                     {"device", model.device},
                     {"load_seconds", model.load_seconds},
                     {"limits", limits_json(service.options(), model.media.limits)},
                     {"options", options_json(service.options().engine, model)},
                     {"token_budgets", model.token_budgets},
                     {"version", version()},
                     {"git", build_id}});
}

void health_generate(Service& service, const std::shared_ptr<Exchange>& exchange) {
  service.check_encodes([exchange](bool works) {
    send_reply(*exchange, [works] {
      return json_reply({{"status", works ? "ok" : "unhealthy"}}, works ? 200 : kUnavailable);
    });
  });
}

}  // namespace

std::vector<Route> health_routes(Service& service, std::string build_id) {
  std::vector<Route> routes;
  for (const char* pattern : {"/health", "/readyz", "/health/ready", "/ping"}) {
    routes.push_back(probe_route(pattern, [&service] { return health(service); }));
  }
  for (const char* pattern : {"/livez", "/health/live"}) {
    routes.push_back(probe_route(pattern, [&service] { return liveness(service); }));
  }
  routes.push_back(
      {.method = "GET",
       .pattern = "/health_generate",
       .kind = RouteKind::kService,
       .handler = [&service](const std::shared_ptr<Exchange>& exchange, const PathArguments&) {
         health_generate(service, exchange);
       }});
  routes.push_back(get_route("/version", [build_id] {
    return json_reply({{"version", version()}, {"git", build_id}});
  }));
  routes.push_back(get_route("/info", [&service, build_id] { return info(service, build_id); }));
  return routes;
}

}  // namespace fovea::serve
