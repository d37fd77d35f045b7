// The parts of a server, and how it begins and ends.
#include "serve/serve.h"

#include <unistd.h>

#include <algorithm>
#include <new>
#include <optional>
#include <utility>

#include "fovea/atomic_file.h"
#include "fovea/error.h"
#include "fovea/version.h"
#include "serve/background_read.h"
#include "serve/routes/admin/routes.h"
#include "serve/routes/llm/routes.h"
#include "serve/routes/routes.h"
#include "serve/routes/vllm/routes.h"
#include "serve/server_files.h"
#include "serve/signals.h"
#include "serve/tracing/tracer.h"

namespace fovea::serve {
namespace {

using std::chrono::milliseconds;
using SteadyTime = std::chrono::steady_clock::time_point;

using FilesReader = BackgroundRead<ServerFiles>;

/// The keys of the command line and those of the file.
std::vector<std::string> all_keys(std::vector<std::string> keys, const ServerFiles& files) {
  std::ranges::copy(files.api_keys, std::back_inserter(keys));
  return keys;
}

AdmissionOptions with_keys_of_file(AdmissionOptions options, const ServerFiles& files) {
  options.api_keys = all_keys(std::move(options.api_keys), files);
  return options;
}

std::optional<Publisher> publisher_of(const ServeOptions& options) {
  if (!options.publisher) return std::nullopt;
  return std::optional<Publisher>(std::in_place, *options.publisher);
}

std::optional<Forwarder> forwarder_of(const ServeOptions& options, LogSink& log) {
  if (!options.llm) return std::nullopt;
  UpstreamOptions llm = *options.llm;
  const bool has_keys = !options.admission.api_keys.empty() || !options.api_key_file.empty();
  llm.key.passes_client_keys = !has_keys;
  llm.key.admin_keys = KeySet(options.admission.admin_keys);
  return std::optional<Forwarder>(std::in_place, std::move(llm), &log);
}

std::optional<Tracer> tracer_of(const ServeOptions& options, LogSink& log) {
  if (!options.tracing) return std::nullopt;
  return std::optional<Tracer>(std::in_place, *options.tracing, &log);
}

/// The span of a request, but for its times and its place.
/// Source: OpenTelemetry, semantic conventions, "HTTP server".
Span request_span(const Served& served) {
  const std::string pattern = served.route == nullptr ? "" : served.route->pattern;
  Span span{.context = {},
            .parent_id = {},
            .name = served.head.method + " " + pattern,
            .begin = {},
            .end = {}};
  span.attributes = {{"http.request.method", served.head.method},
                     {"http.route", pattern},
                     {"url.path", served.head.path},
                     {"http.response.status_code", std::int64_t{served.status}},
                     {"client.address", served.head.peer},
                     {"http.request.body.size", static_cast<std::int64_t>(served.bytes_in)},
                     {"http.response.body.size", static_cast<std::int64_t>(served.bytes_out)},
                     {"fovea.request.id", served.head.id}};
  span.has_failed = served.status >= 500;
  if (!served.error_code.empty()) {
    span.attributes.emplace_back("error.type", std::string(served.error_code));
  } else if (served.status >= 500) {
    span.attributes.emplace_back("error.type", std::to_string(served.status));
  }
  return span;
}

void end_trace(const Served& served) noexcept {
  if (!served.head.trace) return;
  try {
    served.head.trace->end(request_span(served), Clock::now());
  } catch (const std::bad_alloc&) {  // NOLINT: a span less
  }
}

/// All parts of a running server. Later ones refer to earlier ones.
class Running {
 public:
  /// @param files what `reader` has read. Both others must outlive this.
  Running(ServeOptions options, const ServerFiles& files, FilesReader& reader, LogSink& log)
      : options_(std::move(options)),
        log_(log),
        trace_(options_.profile_dir),
        tracer_(tracer_of(options_, log)),
        store_(options_.row_store_bytes),
        publisher_(publisher_of(options_)),
        forwarder_(forwarder_of(options_, log)),
        service_(service_options()),
        media_(media_options()),
        encoder_{service_, media_, options_.limits},
        admission_(with_keys_of_file(options_.admission, files), service_),
        router_(make_router()),
        server_(http_options(), server_parts(files)),
        reader_(reader) {
    media_.use_headers(files.media_headers);
  }
  /// Handlers run on threads of the service, and use what comes after it here.
  ~Running() {
    server_.stop(milliseconds(0));
    service_.stop(milliseconds(0));
    if (forwarder_) forwarder_->stop();  // whose requests hold memory of the service
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  void run(const Signals& signals);

 private:
  [[nodiscard]] ServiceOptions service_options();
  [[nodiscard]] MediaSourceOptions media_options();
  [[nodiscard]] HttpOptions http_options();
  /// Traces what routes of kWork are asked.
  [[nodiscard]] decltype(Server::Parts::begin_trace) trace_beginner();
  [[nodiscard]] Server::Parts server_parts(const ServerFiles& files);
  [[nodiscard]] Router make_router();
  /// Adds the routes that encode for consumers who look for rows elsewhere.
  void add_row_places(Router& router);
  void observe(const Served& served);
  /// Waits until a signal asks for the end. @throws Error if the model cannot be loaded.
  void wait_for_end(const Signals& signals);
  /// Goes on with the files that have been read again, if that is over.
  void use_fresh_files();
  void shut_down(const Signals& signals);

  ServeOptions options_;
  LogSink& log_;
  RequestMetrics metrics_;
  Trace trace_;
  std::optional<Tracer> tracer_;  // outlives all requests
  RowStore store_;  // these two outlive the threads of the service, which write replies
  std::optional<Publisher> publisher_;
  std::optional<Forwarder> forwarder_;
  Service service_;
  MediaSource media_;
  Encoder encoder_;
  Admission admission_;
  Router router_;
  Server server_;
  FilesReader& reader_;
};

ServiceOptions Running::service_options() {
  ServiceOptions service = options_.service;
  service.log = &log_;
  service.engine.log = &log_;
  service.lends_rows = options_.lend.max_at_once > 0 && !options_.llm;
  service.on_complete = [this](const JobReply& reply, std::span<const PlannedItem> items) {
    metrics_.observe(reply, items);
    trace_.observe(reply);
  };
  return service;
}

MediaSourceOptions Running::media_options() {
  MediaSourceOptions media = options_.media;
  media.max_frames = options_.service.engine.media.limits.max_video_frames;
  media.on_resolved = [this](const MediaCounts& counts) { metrics_.observe(counts); };
  media.take_room = [this](std::size_t bytes) { return service_.take_memory(bytes); };
  return media;
}

HttpOptions Running::http_options() {
  HttpOptions http = options_.http;
  http.server_name = std::string("fovea/") + version();
  http.log = &log_;
  return http;
}

decltype(Server::Parts::begin_trace) Running::trace_beginner() {
  if (!tracer_) return {};
  return [this](const RequestHead& head, const Route& route) {
    return route.kind == RouteKind::kWork ? tracer_->begin(head.headers, head.arrival) : nullptr;
  };
}

Server::Parts Running::server_parts(const ServerFiles& files) {
  return {.router = &router_,
          .gate = [this](const RequestHead& head,
                         const Route& route) { return admission_.admit(head, route); },
          .observer = [this](const Served& served) { observe(served); },
          .run_task = [this](std::function<void()> task) { service_.run(std::move(task)); },
          .begin_trace = trace_beginner(),
          .tls = files.tls};
}

void Running::add_row_places(Router& router) {
  Publisher* publisher = publisher_ ? &*publisher_ : nullptr;
  for (Route& route : cache_routes(service_, store_, publisher)) router.add(std::move(route));
  router.add(chat_route(encoder_, {store_, publisher}, options_.chat));
  if (options_.lend.max_at_once == 0) return;
  LendOptions lend = options_.lend;
  lend.max_keys = options_.limits.max_items;
  router.add(lend_route({.store = store_,
                         .lend = [this](auto keys) { return service_.lend_rows(keys); },
                         .try_lend = [this](auto keys) { return service_.try_lend_rows(keys); },
                         .run_task = [this](auto task) { service_.run(std::move(task)); }},
                        lend));
}

Router Running::make_router() {
  Router router;
  const auto add = [&router](std::vector<Route> routes) {
    for (Route& route : routes) router.add(std::move(route));
  };
  add(health_routes(service_, options_.build_id));
  if (forwarder_) {
    add(llm_routes(*forwarder_));
    router.add(llm_chat_route(encoder_, *forwarder_));
  } else {
    add(model_routes(service_));
    add_row_places(router);
  }
  router.add(encode_route(encoder_));
  router.add(plan_route(encoder_));
  add(embedding_routes(encoder_));
  router.add(embed_route(encoder_));
  add(kserve_routes(encoder_));
  add(profile_routes(service_, trace_));
  router.add(metrics_route({.service = &service_,
                            .admission = &admission_,
                            .requests = &metrics_,
                            .forwarder = forwarder_ ? &*forwarder_ : nullptr,
                            .tracer = tracer_ ? &*tracer_ : nullptr,
                            .http = [this] { return server_.stats(); },
                            .build_id = options_.build_id}));
  add(page_routes());
  router.add(openapi_route(router_));
  return router;
}

/// Probes and scrapes come every few seconds, so they are for those who look closely.
void Running::observe(const Served& served) {
  metrics_.observe(served);
  trace_.observe(served);
  end_trace(served);
  const bool is_probe = served.route != nullptr && served.route->kind == RouteKind::kService;
  const LogLevel level = is_probe && served.status < 400 ? LogLevel::kDebug : LogLevel::kInfo;
  if (log_.wants(level)) log_.write(level, request_line(served));
  if (!served.error_detail.empty()) log_.write(LogLevel::kError, failure_line(served));
}

void Running::run(const Signals& signals) {
  server_.start();
  log_.write(LogLevel::kInfo, "listening address=" + server_.address());
  if (!options_.address_file.empty()) {
    const std::string line = server_.address() + "\n";
    AtomicFile file(options_.address_file);
    file.write(std::as_bytes(std::span(line)));
    file.commit();
  }
  wait_for_end(signals);
  shut_down(signals);
}

void Running::wait_for_end(const Signals& signals) {
  constexpr milliseconds kPollInterval(100);
  bool is_loaded = false;
  for (;;) {
    const std::optional<int> signal = signals.wait(kPollInterval);
    if (signal == SIGHUP) reader_.start();
    if (signal && signal != SIGHUP) return;
    use_fresh_files();
    if (is_loaded || service_.state() == ServiceState::kStarting) continue;
    if (service_.engine_stats() == nullptr) throw Error(ErrorCode::kInternal, service_.problem());
    is_loaded = true;
    log_.write(LogLevel::kInfo, "ready model=" + options_.service.served_name);
  }
}

void Running::use_fresh_files() {
  try {
    const std::optional<ServerFiles> fresh = reader_.take();
    if (!fresh) return;
    if (fresh->tls) server_.use_tls(*fresh->tls);
    media_.use_headers(fresh->media_headers);
    admission_.set_keys(all_keys(options_.admission.api_keys, *fresh),
                        options_.admission.admin_keys);
    log_.write(LogLevel::kInfo, "reloaded");
  } catch (const std::exception& error) {
    log_.write(LogLevel::kError, std::string("not reloaded: ") + error.what());
  }
}

/// Waits for a second signal, which ends the process at once; SIGHUP is none.
void leave_at_second_signal(const Signals& signals, milliseconds timeout) {
  constexpr int kSignalExit = 128;
  const SteadyTime end = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(end - std::chrono::steady_clock::now());
    const std::optional<int> signal = signals.wait(std::max(left, milliseconds(0)));
    if (signal && signal != SIGHUP) _exit(kSignalExit + *signal);
    if (!signal || left <= milliseconds(0)) return;
  }
}

void Running::shut_down(const Signals& signals) {
  constexpr milliseconds kPollInterval(50);
  service_.announce_end();
  log_.write(LogLevel::kInfo, "shutting_down requests=" + std::to_string(admission_.in_flight()));
  leave_at_second_signal(signals, options_.drain_delay);
  server_.drain();
  const SteadyTime end = std::chrono::steady_clock::now() + options_.shutdown_timeout;
  while (!server_.is_idle() && std::chrono::steady_clock::now() < end) {
    leave_at_second_signal(signals, kPollInterval);
  }
  service_.stop(milliseconds(0));
  server_.stop(kPollInterval);
  log_.write(LogLevel::kInfo, "stopped");
}

}  // namespace

int serve(ServeOptions options, LogSink& log) {
  const Signals signals;
  // A file of a network may hang for ever, and signals are blocked by now.
  FilesReader reader(
      [paths = ServerPaths{options.api_key_file, options.http.tls, options.media_headers_file,
                           options.media.headers}] { return read_files(paths); });
  reader.start();
  const std::optional<ServerFiles> files = reader.wait(signals);
  if (files) Running(std::move(options), *files, reader, log).run(signals);
  return 0;
}

}  // namespace fovea::serve
