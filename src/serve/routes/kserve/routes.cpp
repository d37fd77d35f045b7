#include "serve/routes/routes.h"

#include <algorithm>
#include <string>
#include <utility>

#include "fovea/version.h"
#include "serve/api_error.h"
#include "serve/http/message.h"
#include "serve/routes/kserve/infer_reply.h"
#include "serve/routes/kserve/infer_request.h"
#include "serve/routes/output_options.h"

namespace fovea::serve {
namespace {

/// Checks the names in a path: a model, and perhaps a version.
void check_path(const Service& service, const PathArguments& names) {
  service.check_model_name(names[0]);
  if (names.size() < 2 || names[1] == "1") return;
  throw ApiError(404, "model_not_found",
                 "no version \"" + shortened(names[1], 60) + "\" here; there is version 1");
}

Reply server_metadata() {
  JsonObject json;
  json.set("name", "fovea");
  json.set("version", version());
  json.set("extensions", JsonArray::of("binary_tensor_data", "parameters", "statistics"));
  return json_reply(json);
}

Reply health(const char* name, bool holds) {
  return json_reply({{name, holds}}, holds ? 200 : 503);
}

JsonObject tensor_json(const char* name, const char* datatype,
                       const std::vector<std::int64_t>& shape) {
  JsonObject json;
  json.set("name", name);
  json.set("datatype", datatype);
  json.set("shape", shape);
  return json;
}

/// Whether items of the model have grids: those of an image of common size.
bool has_grids(const Engine& engine) {
  const ItemSize size{.width_px = 448, .height_px = 448};
  return engine.plan(std::span(&size, 1)).items.at(0).grid_thw.has_value();
}

Reply model_metadata(const Service& service) {
  const ServedModel& model = service.model();
  JsonArray outputs;
  outputs.add(tensor_json("embeddings", kserve_datatype(element_type(model.dtype)),
                          {-1, model.report.width}));
  outputs.add(tensor_json("num_embeds", "INT64", {-1}));
  if (has_grids(service.engine())) outputs.add(tensor_json("grid_thw", "INT64", {-1, 3}));
  JsonObject json;
  json.set("name", service.options().served_name);
  json.set("versions", JsonArray::of("1"));
  json.set("platform", "fovea_native");
  json.set("inputs", JsonArray::of(tensor_json("media", "BYTES", {-1})));
  json.set("outputs", outputs);
  return json_reply(json);
}

Reply model_ready(const Service& service) {
  const bool is_ready = service.state() == ServiceState::kReady;
  JsonObject json;
  json.set("name", service.options().served_name);
  json.set("ready", is_ready);
  return json_reply(json, is_ready ? 200 : 503);
}

JsonObject duration_json(std::int64_t count, double seconds) {
  JsonObject json;
  json.set("count", count);
  json.set("ns", static_cast<std::int64_t>(seconds * 1e9));
  return json;
}

Reply model_stats(const Service& service) {
  const BatcherStats stats = service.batcher_stats();
  const std::int64_t failed = stats.failed + stats.cancelled + stats.expired;
  JsonObject json;
  json.set("name", service.options().served_name);
  json.set("version", "1");
  json.set("inference_count", stats.batch_items);
  json.set("execution_count", stats.batches);
  JsonObject times;
  times.set("success", duration_json(stats.completed, stats.queue_seconds + stats.run_seconds));
  times.set("fail", duration_json(failed, 0));
  times.set("queue", duration_json(stats.batch_requests, stats.queue_seconds));
  times.set("compute_infer", duration_json(stats.batches, stats.run_seconds));
  json.set("inference_stats", times);
  return json_reply({{"model_stats", JsonArray::of(json)}});
}

/// Bytes of a reply per byte of the rows that the engine makes, beyond these.
double reply_factor(const RowOptions& rows) {
  constexpr double kNumberBytes = 14;  // of text, with its comma
  if (rows.pooling != Pooling::kNone) return 0;
  return rows.type == ElementType::kFloat32 ? kNumberBytes / 4 : 0;
}

EncodeCall read_call(const Encoder& encoder, const Request& http, const PathArguments& names) {
  const Service& service = encoder.service;
  const CallLimits& limits = encoder.limits;
  check_path(service, names);
  auto request = std::make_shared<InferRequest>(
      parse_infer_request(http.body, inference_header_length(http.headers), limits.max_items));
  const ServedModel& model = service.model();
  const RowOptions rows = infer_rows(*request, element_type(model.dtype));
  check_pooling(rows, service);
  EncodeCall call;
  call.media = std::move(request->media);
  call.json = std::move(request->json);
  for (const MediaReference& reference : call.media) MediaCounter(limits.media).count(reference);
  call.dtype = engine_dtype(rows);
  call.reply_factor = reply_factor(rows);
  if (request->timeout) call.deadline = http.arrival + *request->timeout;
  call.make_reply = [encoder, rows, request = std::move(request)](JobReply reply) {
    const ReplyHead head{.model = encoder.service.options().served_name,
                         .hidden = encoder.service.model().report.hidden,
                         .max_json_values = encoder.limits.max_json_values,
                         .room = std::move(reply.room)};
    return infer_reply(*request, rows, head, reply.items);
  };
  return call;
}

/// A GET route of a model, and the same of its version.
void add_model_routes(std::vector<Route>& routes, const Service& service, const std::string& end,
                      Reply (*answer)(const Service&)) {
  for (const char* start : {"/v2/models/{m}", "/v2/models/{m}/versions/{v}"}) {
    routes.push_back(get_route(start + end, [&service, answer](const PathArguments& names) {
      check_path(service, names);
      return answer(service);
    }));
  }
}

}  // namespace

std::vector<Route> kserve_routes(const Encoder& encoder) {
  const Service& service = encoder.service;
  std::vector<Route> routes;
  routes.push_back(get_route("/v2", server_metadata));
  routes.push_back(probe_route("/v2/health/live", [&service] {
    return health("live", service.state() != ServiceState::kUnhealthy);
  }));
  routes.push_back(probe_route("/v2/health/ready", [&service] {
    return health("ready", service.state() == ServiceState::kReady);
  }));
  add_model_routes(routes, service, "", model_metadata);
  add_model_routes(routes, service, "/ready", model_ready);
  add_model_routes(routes, service, "/stats", model_stats);
  for (const char* pattern : {"/v2/models/{m}/infer", "/v2/models/{m}/versions/{v}/infer"}) {
    routes.push_back(work_route(encoder, pattern, read_call));
  }
  return routes;
}

}  // namespace fovea::serve
