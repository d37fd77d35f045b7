#include "serve/routes/admin/routes.h"

#include <array>
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

constexpr std::array<ReplyMember, 1> kHealthMembers{
    {{"status", schema::text, "ok while requests are taken and served soon"}}};
constexpr ReplyObject kHealth{"Health", kHealthMembers};
constexpr std::array<ReplyMember, 1> kLivenessMembers{
    {{"live", schema::boolean, "Whether the process works"}}};
constexpr ReplyObject kLiveness{"Liveness", kLivenessMembers};
constexpr std::array<ReplyMember, 2> kVersionMembers{
    {{"version", schema::text, "Of the program"},
     {"git", schema::text, "Commit that it was built of"}}};
constexpr ReplyObject kVersion{"Version", kVersionMembers};
constexpr std::array<ReplyMember, 18> kInfoMembers{
    {{"model", schema::text, "Name that clients use"},
     {"architecture", schema::text, "As config.json has it"},
     {"family", schema::text, "That it belongs to"},
     {"dtype", schema::text, "Of the checkpoint"},
     {"hidden", schema::integer, "Width of the main embedding"},
     {"deepstack_levels", schema::integer, "Levels beside it"},
     {"width", schema::integer, "Width of a row"},
     {"images", schema::boolean, "Whether images are taken"},
     {"videos", schema::boolean, "Whether videos are taken"},
     {"facts", schema::object, "Of the family"},
     {"fingerprint", schema::text, "Of weights and of options that rows depend on"},
     {"device", schema::text, "That encodes"},
     {"load_seconds", schema::number, "Time that loading took"},
     {"limits", schema::object, "Of requests"},
     {"options", schema::object, "Of the engine; paths are ***"},
     {"token_budgets", schema::map<schema::list<schema::integer>>, "Of the graphs of each path"},
     {"version", schema::text, "Of the program"},
     {"git", schema::text, "Commit that it was built of"}}};
constexpr ReplyObject kInfo{"Info", kInfoMembers};

/// The text of a probe, which has the same body when it fails.
RouteText probe_text(std::string_view summary, SchemaOf schema) {
  return {.summary = summary,
          .gives = {{.schema = schema}, {.schema = schema, .status = kUnavailable}}};
}

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
    routes.push_back(probe_route(
        pattern, probe_text("Whether requests are taken and served soon", schema::reply<kHealth>),
        [&service] { return health(service); }));
  }
  for (const char* pattern : {"/livez", "/health/live"}) {
    routes.push_back(probe_route(pattern,
                                 probe_text("Whether the process works", schema::reply<kLiveness>),
                                 [&service] { return liveness(service); }));
  }
  routes.push_back(
      {.method = "GET",
       .pattern = "/health_generate",
       .kind = RouteKind::kService,
       .handler = [&service](const std::shared_ptr<Exchange>& exchange,
                             const PathArguments&) { health_generate(service, exchange); },
       .text = probe_text("Encodes an image of 32 x 32", schema::reply<kHealth>)});
  routes.push_back(get_route(
      "/version", {.summary = "The version", .gives = {{.schema = schema::reply<kVersion>}}},
      [build_id] {
        return json_reply({{"version", version()}, {"git", build_id}});
      }));
  routes.push_back(get_route("/info",
                             {.summary = "The model, its limits and every option",
                              .gives = {{.schema = schema::reply<kInfo>}}},
                             [&service, build_id] { return info(service, build_id); }));
  return routes;
}

}  // namespace fovea::serve
