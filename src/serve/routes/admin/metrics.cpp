#include "serve/routes/admin/routes.h"

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "fovea/version.h"
#include "serve/metrics/metrics_text.h"
#include "serve/routes/encode_call.h"
#include "serve/routes/reply_schemas.h"

namespace fovea::serve {
namespace {

constexpr std::array<ReplyMember, 1> kProfileMembers{
    {{"file", schema::text, "Name of the file in --profile-dir"}}};
constexpr ReplyObject kProfile{"Profile", kProfileMembers};

void write_server(const MetricsSources& sources, MetricsText& text) {
  const HttpStats http = sources.http();
  text.gauge("fovea_connections", "Connections that are open.");
  text.sample(http.connections);
  text.counter("fovea_connections_total", "Connections accepted.");
  text.sample(http.accepted);
  text.gauge("fovea_requests_in_flight", "Requests that are read, worked on or answered.");
  text.sample(http.requests_in_progress);
  text.gauge("fovea_work_in_flight", "Of these, the ones that count towards the limit.");
  text.sample(sources.admission->in_flight());
  const RefusedStats refused = sources.admission->refused();
  text.counter("fovea_rejected_total", "Requests refused before they were worked on.");
  text.sample(refused.queue_full, {{"reason", "queue_full"}});
  text.sample(refused.no_memory, {{"reason", "memory"}});
  text.sample(refused.not_ready, {{"reason", "not_ready"}});
  text.sample(refused.no_key, {{"reason", "key"}});
}

void write_service(const MetricsSources& sources, MetricsText& text) {
  const Service& service = *sources.service;
  text.gauge("fovea_inflight_bytes", "Memory reserved for bodies and replies.");
  text.sample(static_cast<double>(service.memory().used()));
  text.gauge("fovea_inflight_capacity_bytes", "Most of that memory.");
  text.sample(static_cast<double>(service.memory().capacity()));
  const ServiceState state = service.state();
  text.gauge("fovea_ready", "1 while requests are taken.");
  text.sample(std::int64_t{state == ServiceState::kReady ? 1 : 0});
  text.gauge("fovea_stalled", "1 while there is work and nothing of it moves.");
  text.sample(std::int64_t{state == ServiceState::kUnhealthy ? 1 : 0});
  write_metrics(service.batcher_stats(), text);
  if (const std::shared_ptr<const Stats> stats = service.engine_stats()) {
    write_metrics(*stats, text);
    text.gauge("fovea_model_load_seconds", "Time that loading the model took.");
    text.sample(service.model().load_seconds);
  }
}

void write_spans(const ExportStats& spans, MetricsText& text) {
  text.counter("fovea_trace_spans_total", "Spans, by whether the collector has them.");
  text.sample(spans.sent, {{"result", "sent"}});
  text.sample(spans.queue_full, {{"result", "queue_full"}});
  text.sample(spans.not_sent, {{"result", "not_sent"}});
}

Reply metrics(const MetricsSources& sources) {
  const std::vector<Label> common{{"model", sources.service->options().served_name}};
  MetricsText text(common);
  write_server(sources, text);
  sources.requests->write(text);
  if (sources.forwarder != nullptr) sources.forwarder->write(text);
  write_service(sources, text);
  if (sources.tracer != nullptr) write_spans(sources.tracer->stats(), text);
  MetricsText plain({});
  plain.gauge("fovea_build_info", "Version and build of this server.");
  plain.sample(std::int64_t{1}, {{"version", version()}, {"git", sources.build_id}});
  write_process_metrics(plain);
  return text_reply(200, "text/plain; version=0.0.4; charset=utf-8", text.text() + plain.text());
}

}  // namespace

Route metrics_route(MetricsSources sources) {
  return probe_route("/metrics",
                     {.summary = "All counters, as Prometheus reads them",
                      .gives = {{.schema = schema::text, .type = kTextType}}},
                     [sources = std::move(sources)] { return metrics(sources); });
}

std::vector<Route> profile_routes(Service& service, Trace& trace) {
  using Call = const std::shared_ptr<Exchange>&;
  const auto start = [&trace](Call exchange, const PathArguments&) {
    trace.start();
    exchange->reply(json_reply(JsonObject()));
  };
  const auto stop = [&service, &trace](Call exchange, const PathArguments&) {
    service.run([exchange, &trace] {
      send_reply(*exchange, [&] { return json_reply({{"file", trace.stop()}}); });
    });
  };
  return {{.method = "POST",
           .pattern = "/start_profile",
           .kind = RouteKind::kAdmin,
           .handler = start,
           .text = {.summary = "Begins to note what the server does",
                    .gives = {{.schema = schema::object}}}},
          {.method = "POST",
           .pattern = "/stop_profile",
           .kind = RouteKind::kAdmin,
           .handler = stop,
           .text = {.summary = "Writes what it has noted",
                    .gives = {{.schema = schema::reply<kProfile>}}}}};
}

}  // namespace fovea::serve
