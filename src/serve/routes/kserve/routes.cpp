#include "serve/routes/routes.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "fovea/version.h"
#include "serve/api_error.h"
#include "serve/http/message.h"
#include "serve/routes/kserve/infer_reply.h"
#include "serve/routes/kserve/infer_request.h"
#include "serve/routes/output_options.h"
#include "serve/routes/reply_schemas.h"

namespace fovea::serve {
namespace {

constexpr std::array<ReplyMember, 3> kServerMetadataMembers{
    {{"name", schema::text, "fovea"},
     {"version", schema::text, "Of the program"},
     {"extensions", schema::list<schema::text>, "Of the protocol"}}};
constexpr ReplyObject kServerMetadata{"ServerMetadata", kServerMetadataMembers};
constexpr std::array<ReplyMember, 1> kLiveMembers{
    {{"live", schema::boolean, "Whether the process works"}}};
constexpr ReplyObject kLive{"ServerLive", kLiveMembers};
constexpr std::array<ReplyMember, 1> kReadyMembers{
    {{"ready", schema::boolean, "Whether requests are taken"}}};
constexpr ReplyObject kReady{"ServerReady", kReadyMembers};
constexpr std::array<ReplyMember, 3> kTensorMetadataMembers{
    {{"name", schema::text, "Of the tensor"},
     {"datatype", schema::text, "Of its elements"},
     {"shape", schema::list<schema::integer>, "-1: any"}}};
constexpr ReplyObject kTensorMetadata{"TensorMetadata", kTensorMetadataMembers};
constexpr std::array<ReplyMember, 5> kModelMetadataMembers{
    {{"name", schema::text, "Of the model"},
     {"versions", schema::list<schema::text>, "The one"},
     {"platform", schema::text, "fovea_native"},
     {"inputs", schema::list<schema::reply<kTensorMetadata>>, "media"},
     {"outputs", schema::list<schema::reply<kTensorMetadata>>, "Of a request"}}};
constexpr ReplyObject kModelMetadata{"ModelMetadata", kModelMetadataMembers};
constexpr std::array<ReplyMember, 2> kModelReadyMembers{
    {{"name", schema::text, "Of the model"},
     {"ready", schema::boolean, "Whether requests are taken"}}};
constexpr ReplyObject kModelReady{"ModelReady", kModelReadyMembers};
constexpr std::array<ReplyMember, 2> kDurationMembers{
    {{"count", schema::integer, "Of what took it"}, {"ns", schema::integer, "Nanoseconds of all"}}};
constexpr ReplyObject kDuration{"StatisticDuration", kDurationMembers};
constexpr std::array<ReplyMember, 4> kInferStatsMembers{
    {{"success", schema::reply<kDuration>, "Requests"},
     {"fail", schema::reply<kDuration>, "Requests that failed"},
     {"queue", schema::reply<kDuration>, "Waiting"},
     {"compute_infer", schema::reply<kDuration>, "Batches"}}};
constexpr ReplyObject kInferStats{"InferStatistics", kInferStatsMembers};
constexpr std::array<ReplyMember, 5> kModelStatsMembers{
    {{"name", schema::text, "Of the model"},
     {"version", schema::text, "1"},
     {"inference_count", schema::integer, "Items"},
     {"execution_count", schema::integer, "Batches"},
     {"inference_stats", schema::reply<kInferStats>, "Times"}}};
constexpr ReplyObject kModelStats{"ModelStatistics", kModelStatsMembers};
constexpr std::array<ReplyMember, 1> kStatsMembers{
    {{"model_stats", schema::list<schema::reply<kModelStats>>, "Of the one model"}}};
constexpr ReplyObject kStats{"ModelStatisticsList", kStatsMembers};
constexpr std::array<ReplyMember, 1> kOutputParametersGivenMembers{
    {{"binary_data_size", schema::integer, "Bytes behind the JSON"}}};
constexpr ReplyObject kOutputParametersGiven{"InferredParameters", kOutputParametersGivenMembers};
constexpr std::array<ReplyMember, 5> kInferredMembers{
    {{"name", schema::text, "Of the tensor"},
     {"datatype", schema::text, "Of its elements"},
     {"shape", schema::list<schema::integer>, "Of it"},
     {"parameters", schema::reply<kOutputParametersGiven>, "Where it comes as bytes", false},
     {"data", schema::list<schema::number>, "Its elements, where it comes as JSON", false}}};
constexpr ReplyObject kInferred{"InferredTensor", kInferredMembers};
constexpr std::array<ReplyMember, 4> kInferReplyMembers{
    {{"model_name", schema::text, "Of the model"},
     {"model_version", schema::text, "1"},
     {"id", schema::text, "As the request has it", false},
     {"outputs", schema::list<schema::reply<kInferred>>, "Tensors"}}};
constexpr ReplyObject kInferReply{"InferReply", kInferReplyMembers};

/// The parameter of requests with bytes behind their JSON.
std::vector<JsonObject> infer_parameters() {
  return {JsonObject{{"name", "Inference-Header-Content-Length"},
                     {"in", "header"},
                     {"description",
                      "Bytes of the JSON, where tensors follow it; 0: the "
                      "body is one image"},
                     {"schema", JsonObject{{"type", "integer"}, {"minimum", 0}}}}};
}

RouteText infer_text() {
  return {.summary = "Rows of items, as KServe has them",
          .takes = {{.schema = infer_schema}, {.schema = schema::bytes, .type = kBinaryType}},
          .gives = {{.schema = schema::reply<kInferReply>},
                    {.schema = schema::bytes, .type = kBinaryType}},
          .parameters = infer_parameters,
          .example = "-H 'Inference-Header-Content-Length: 0' --data-binary @photo.jpg -o reply"};
}

/// A text whose body is the same with 503.
RouteText state_text(std::string_view summary, SchemaOf schema) {
  return {.summary = summary, .gives = {{.schema = schema}, {.schema = schema, .status = 503}}};
}

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
double reply_factor(const InferRequest& request, const RowOptions& rows) {
  if (rows.pooling != Pooling::kNone || rows.type != ElementType::kFloat32) return 0;
  return static_cast<double>(rows_as_json(request)) * kJsonNumberBytes / 4;
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
  call.reply_factor = reply_factor(*request, rows);
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
                      const RouteText& text, Reply (*answer)(const Service&)) {
  for (const char* start : {"/v2/models/{m}", "/v2/models/{m}/versions/{v}"}) {
    routes.push_back(get_route(start + end, text, [&service, answer](const PathArguments& names) {
      check_path(service, names);
      return answer(service);
    }));
  }
}

}  // namespace

std::vector<Route> kserve_routes(const Encoder& encoder) {
  const Service& service = encoder.service;
  std::vector<Route> routes;
  routes.push_back(get_route(
      "/v2", {.summary = "The server", .gives = {{.schema = schema::reply<kServerMetadata>}}},
      server_metadata));
  routes.push_back(probe_route(
      "/v2/health/live", state_text("Whether the process works", schema::reply<kLive>),
      [&service] { return health("live", service.state() != ServiceState::kUnhealthy); }));
  routes.push_back(probe_route(
      "/v2/health/ready", state_text("Whether requests are taken", schema::reply<kReady>),
      [&service] { return health("ready", service.state() == ServiceState::kReady); }));
  add_model_routes(routes, service, "",
                   {.summary = "The model and its tensors",
                    .gives = {{.schema = schema::reply<kModelMetadata>}}},
                   model_metadata);
  add_model_routes(routes, service, "/ready",
                   state_text("Whether the model takes requests", schema::reply<kModelReady>),
                   model_ready);
  add_model_routes(
      routes, service, "/stats",
      {.summary = "What the model has done", .gives = {{.schema = schema::reply<kStats>}}},
      model_stats);
  for (const char* pattern : {"/v2/models/{m}/infer", "/v2/models/{m}/versions/{v}/infer"}) {
    routes.push_back(work_route(encoder, pattern, infer_text(), read_call));
  }
  return routes;
}

}  // namespace fovea::serve
