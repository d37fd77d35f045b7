// The flags of `fovea serve` and `fovea proxy`, group by group.
#include "flags/serve_flags.h"

#include <chrono>
#include <limits>
#include <utility>

#include "core/json.h"
#include "errors.h"
#include "flags/cache_size.h"
#include "flags/cli11.h"
#include "flags/json_text.h"
#include "flags/parse.h"
#include "report/text.h"

namespace fovea::cli {
namespace {

using std::chrono::milliseconds;

constexpr const char* kAddressGroup = "Address";
constexpr const char* kAccessGroup = "Access";
constexpr const char* kLimitGroup = "Limits";
constexpr const char* kSourceGroup = "Where media come from";
constexpr const char* kPublishGroup = "Where rows are found";
constexpr const char* kLlmGroup = "Language models";
constexpr const char* kMessageGroup = "Messages";

/// The largest value of a flag whose variable is of this type.
template <typename Number>
constexpr std::int64_t kMost = std::in_range<std::int64_t>(std::numeric_limits<Number>::max())
                                   ? static_cast<std::int64_t>(std::numeric_limits<Number>::max())
                                   : std::numeric_limits<std::int64_t>::max();

/// A whole number from `min` on into a variable of any integer type.
template <typename Number>
CLI::Option* add_number(CLI::App& verb, const std::string& name, Number& value, std::int64_t min,
                        const std::string& description) {
  const auto read = [&value, name, min](const std::string& text) {
    value = static_cast<Number>(parse_whole(text, min, name, kMost<Number>));
  };
  return verb.add_option_function<std::string>(name, read, description)
      ->type_name("N")
      ->default_str(std::to_string(value));
}

template <typename Number>
CLI::Option* add_bytes(CLI::App& verb, const std::string& name, Number& value,
                       const std::string& description) {
  const auto read = [&value, name](const std::string& text) {
    value = static_cast<Number>(parse_bytes(text, name));
  };
  return verb.add_option_function<std::string>(name, read, description)
      ->type_name("SIZE")
      ->default_str(bytes_text(static_cast<std::size_t>(value)));
}

/// A setting in seconds.
void add_seconds(CLI::App& verb, const std::string& name, milliseconds& value,
                 const std::string& description) {
  constexpr double kMsPerSecond = 1000;
  constexpr double kMostSeconds = 86'400;
  const auto read = [&value, name](const std::string& text) {
    const double seconds = parse_number(text, name);
    if (seconds < 0 || seconds > kMostSeconds) {
      throw UsageError(name + ": expected seconds from 0 to 86400, got \"" + one_line(text) + "\"");
    }
    value = milliseconds(static_cast<std::int64_t>(seconds * kMsPerSecond));
  };
  const double seconds = static_cast<double>(value.count()) / kMsPerSecond;
  const bool is_whole = value.count() % static_cast<std::int64_t>(kMsPerSecond) == 0;
  verb.add_option_function<std::string>(name, read, description)
      ->type_name("SECONDS")
      ->default_str(fixed(seconds, is_whole ? 0 : 3))
      ->group(seldom("Times"));
}

void add_address_flags(CLI::App& verb, ServeFlags& flags) {
  serve::HttpOptions& http = flags.options.http;
  verb.add_option("--host", http.host, "Address to listen on; 0.0.0.0: all of this machine")
      ->type_name("ADDRESS")
      ->capture_default_str()
      ->group(kAddressGroup);
  add_number(verb, "--port", http.port, 0, "Port to listen on; 0: any that is free")
      ->group(kAddressGroup);
  verb.add_option("--uds", http.unix_socket, "Unix socket to listen on, instead of host and port")
      ->type_name("PATH")
      ->group(kAddressGroup);
  verb.add_option("--address-file", flags.options.address_file,
                  "Write the address to this file once the server listens")
      ->type_name("FILE")
      ->group(kAddressGroup);
  verb.add_option("--root-path", http.root_path, "In front of all paths, behind a proxy")
      ->type_name("PATH")
      ->group(kAddressGroup);
  verb.add_option("--served-model-name", flags.options.service.served_name,
                  "What clients call the model (default: the name of its directory)")
      ->type_name("NAME")
      ->group(kAddressGroup);
  verb.add_option("--ssl-certfile", flags.tls_certificate, "Certificate with its chain, PEM")
      ->type_name("FILE")
      ->group(kAddressGroup);
  verb.add_option("--ssl-keyfile", flags.tls_key, "Its key, PEM")
      ->type_name("FILE")
      ->group(kAddressGroup);
  verb.add_option("--ssl-ca-certs", flags.tls_client_ca, "Who signs certificates of clients, PEM")
      ->type_name("FILE")
      ->group(kAddressGroup);
  add_choice(verb, "--ssl-cert-reqs", flags.tls_client_certs, {"none", "optional", "required"},
             "Whether clients need a certificate")
      ->group(kAddressGroup);
}

void add_access_flags(CLI::App& verb, ServeFlags& flags) {
  serve::AdmissionOptions& access = flags.options.admission;
  verb.add_option("--api-key", access.api_keys, "Key that clients need; may be repeated")
      ->type_name("KEY")
      ->group(kAccessGroup);
  verb.add_option("--api-key-file", flags.options.api_key_file,
                  "More keys, at least one, one per line; read again at SIGHUP")
      ->type_name("FILE")
      ->group(kAccessGroup);
  verb.add_option("--admin-api-key", access.admin_keys, "Key for routes that change the server")
      ->type_name("KEY")
      ->group(kAccessGroup);
  verb.add_flag("--auth-all", access.auth_all, "Ask for a key for health and metrics, too")
      ->group(kAccessGroup);
}

/// @throws UsageError for what is no list of texts.
std::vector<std::string> texts_of_json(const std::string& text, const char* name) try {
  const JsonDocument document = JsonDocument::parse(text, name);
  std::vector<std::string> texts;
  for (const JsonView& element : document.root().elements()) texts.push_back(element.as_string());
  return texts;
} catch (const Error& error) {
  throw UsageError(error.what());
}

/// A flag with a list as vLLM has it, '["a", "b"]', or with commas.
void add_list(CLI::App& verb, const char* name, std::vector<std::string>& value,
              const char* description) {
  const auto read = [&value, name](const std::string& text) {
    value = text.starts_with('[') ? texts_of_json(text, name) : split_commas(text);
  };
  verb.add_option_function<std::string>(name, read, description)
      ->type_name("LIST")
      ->group(kAccessGroup);
}

void add_page_flags(CLI::App& verb, serve::CorsOptions& cors) {
  add_list(verb, "--allowed-origins", cors.origins,
           "Origins whose pages may read replies, with commas or as a JSON list; *: all "
           "(default: none)");
  add_list(verb, "--allowed-methods", cors.methods, "Methods of such pages (default: *)");
  add_list(verb, "--allowed-headers", cors.headers, "Headers of such pages (default: *)");
  verb.add_flag("--allow-credentials", cors.allow_credentials,
                "Such pages may send cookies and certificates along")
      ->group(kAccessGroup);
}

void add_limit_flags(CLI::App& verb, ServeFlags& flags) {
  serve::ServeOptions& options = flags.options;
  serve::PromptLimits& prompt = options.limits.media;
  add_number(verb, "--max-concurrent-requests", options.admission.max_concurrent_requests, 1,
             "Requests at a time whose body is there; more are answered 429")
      ->group(kLimitGroup);
  add_number(verb, "--max-queue-delay-us", flags.delay_us, 0,
             "How long a request waits for others to be encoded with, microseconds")
      ->group(kLimitGroup);
  add_number(verb, "--max-images-per-prompt", prompt.images, 0,
             "Images of one conversation, or of one request of other routes")
      ->default_str("any number")
      ->group(kLimitGroup);
  add_number(verb, "--max-videos-per-prompt", prompt.videos, 0, "Videos likewise")
      ->default_str("any number")
      ->group(kLimitGroup);
}

void add_seldom_limits(CLI::App& verb, ServeFlags& flags) {
  serve::ServeOptions& options = flags.options;
  BatcherOptions& batcher = options.service.batcher;
  const auto number = [&verb](const char* name, auto& value, const char* text, std::int64_t min) {
    add_number(verb, name, value, min, text)->group(seldom(kLimitGroup));
  };
  number("--max-connections", options.http.max_connections,
         "Connections at a time; beyond them the longest idle one goes for each that comes", 1);
  number("--max-items-per-request", options.limits.max_items, "Items of one request", 1);
  number("--max-queue-items", batcher.max_items, "Items of all requests together", 1);
  number("--max-batch-rows", batcher.max_batch_rows,
         "Rows that are encoded together; 0: what one graph holds", 0);
  number("--max-batch-items", batcher.max_batch_items, "Items likewise", 0);
  number("--max-json-values", options.limits.max_json_values, "Numbers of a reply in JSON", 1);
  add_bytes(verb, "--max-inflight-bytes", options.service.max_inflight_bytes,
            "Memory for bodies and replies; a client's bodies leave as much to others")
      ->group(seldom(kLimitGroup));
  add_bytes(verb, "--max-body-bytes", options.http.max_body_bytes, "Body of one request")
      ->group(seldom(kLimitGroup));
  number("--min-body-rate", options.http.min_body_rate,
         "Bytes per second that a body must arrive with", 0);
  number("--min-reply-rate", options.http.min_reply_rate,
         "Bytes per second that a reply must be taken with", 0);
  number("--io-threads", options.http.io_threads, "Threads that move bytes", 1);
}

void add_times(CLI::App& verb, ServeFlags& flags) {
  serve::HttpOptions& http = flags.options.http;
  add_seconds(verb, "--request-timeout", http.request_timeout, "For a reply, from the first byte");
  add_seconds(verb, "--header-timeout", http.header_timeout, "For a first byte, and for a head");
  add_seconds(verb, "--body-timeout", http.body_idle_timeout, "Between two pieces of a body");
  add_seconds(verb, "--keep-alive-timeout", http.keep_alive_timeout, "Between two requests");
  add_seconds(verb, "--stall-timeout", flags.options.service.stall_timeout,
              "Until /livez says 503 as nothing moves, and /readyz as no batch ends");
  add_seconds(verb, "--drain-delay", flags.options.drain_delay,
              "Between the fall of readiness and the end of accepting");
  add_seconds(verb, "--shutdown-timeout", flags.options.shutdown_timeout,
              "For requests that run when the server ends");
}

void add_source_flags(CLI::App& verb, ServeFlags& flags) {
  serve::MediaSourceOptions& media = flags.options.media;
  add_choice(verb, "--media-url-policy", flags.url_policy, {"none", "allowlist", "public", "any"},
             "Which http(s) URLs are fetched; any: also inside your network")
      ->group(kSourceGroup);
  verb.add_option("--allowed-media-domains", flags.allowed_domains,
                  "Hosts to fetch from, *.example.org with what is below; implies allowlist")
      ->type_name("HOST,...")
      ->group(kSourceGroup);
  verb.add_option_function<std::string>(
          "--allowed-media-ports",
          [&media](const std::string& text) {
            constexpr std::int64_t kMaxPort = 65'535;
            media.allowed_ports = {80, 443};
            for (const std::int64_t port :
                 parse_positive_list(text, "--allowed-media-ports", kMaxPort)) {
              media.allowed_ports.push_back(static_cast<std::uint16_t>(port));
            }
          },
          "Ports to fetch from, besides 80 and 443")
      ->type_name("N,N,...")
      ->group(kSourceGroup);
  verb.add_option("--media-header", flags.media_headers,
                  "Header of all fetches, 'Name: value'; may be repeated")
      ->type_name("HEADER")
      ->group(kSourceGroup);
  verb.add_option("--media-headers-file", flags.options.media_headers_file,
                  "JSON with headers by origin, credentials among them, that only its owner and "
                  "group can read; read again at SIGHUP")
      ->type_name("FILE")
      ->group(kSourceGroup);
  verb.add_option("--media-proxy", flags.media_proxy,
                  "HTTP proxy to fetch through; environment: what http_proxy, https_proxy and "
                  "no_proxy say (default: none)")
      ->type_name("URL")
      ->group(kSourceGroup);
  verb.add_option("--media-no-proxy", flags.media_no_proxy,
                  "Hosts and blocks of addresses to fetch from without it")
      ->type_name("HOST,...")
      ->group(kSourceGroup);
  add_choice(verb, "--media-proxy-lookup", flags.media_proxy_lookup, {"here", "proxy"},
             "Who looks names up; proxy: without a check of addresses, not with policy public")
      ->group(kSourceGroup);
  verb.add_option("--allowed-local-media-path", media.allowed_local_path,
                  "Folder that file: URLs may name files of (default: none)")
      ->type_name("DIR")
      ->group(kSourceGroup);
  add_bytes(verb, "--max-image-bytes", media.max_image_bytes, "An encoded image")
      ->group(kSourceGroup);
  add_bytes(verb, "--max-video-bytes", media.max_video_bytes, "An encoded video")
      ->group(kSourceGroup);
}

void add_seldom_fetch_flags(CLI::App& verb, serve::MediaSourceOptions& media) {
  add_number(verb, "--media-max-redirects", media.max_redirects, 0, "Redirects that are followed")
      ->group(seldom(kSourceGroup));
  add_number(verb, "--max-media-fetches", media.max_fetches, 1,
             "Fetches at a time, of one client half of them; others wait")
      ->group(seldom(kSourceGroup));
  add_seconds(verb, "--image-fetch-timeout", media.image_timeout, "To fetch an image");
  add_seconds(verb, "--video-fetch-timeout", media.video_timeout, "To fetch a video");
}

/// Adds flags for language models that look for rows elsewhere than in a reply.
void add_publishing_flags(CLI::App& verb, ServeFlags& flags) {
  verb.add_option("--ec-dir", flags.publish.options.directory,
                  "Folder where vLLM's ECExampleConnector looks for rows (default: none)")
      ->type_name("DIR")
      ->group(kPublishGroup);
  verb.add_option(
          "--ec-model-id", flags.options.chat.ec_model_id,
          "vLLM's --model: publish requests with processor options under vLLM's digest, too")
      ->type_name("NAME")
      ->group(kPublishGroup);
  add_number(verb, "--lend-rows", flags.options.lend.max_at_once, 0,
             "Requests at a time to which processes of this host read rows on the GPU where they "
             "lie; needs --encoder-device-cache-size; 0: none")
      ->group(kPublishGroup);
}

void add_seldom_publishing_flags(CLI::App& verb, ServeFlags& flags) {
  PublishFlags& publish = flags.publish;
  add_bytes(verb, "--row-store-bytes", flags.options.row_store_bytes,
            "Rows that /v1/cache keeps, by what clients called them")
      ->group(seldom(kPublishGroup));
  add_bytes(verb, "--ec-max-bytes", publish.options.max_bytes, "Files in that folder together")
      ->group(seldom(kPublishGroup));
  add_seconds(verb, "--ec-min-age", publish.options.min_age,
              "Age that a file must have before it may go");
  add_seconds(verb, "--lend-timeout", flags.options.lend.most_time,
              "For which rows are lent, at most");
  add_choice(verb, "--ec-hash", publish.hash, {"blake3", "sha256", "sha512"},
             "vLLM's --mm-hasher-algorithm, for that digest")
      ->group(seldom(kPublishGroup));
}

void add_llm_flags(CLI::App& verb, serve::UpstreamOptions& llm) {
  verb.add_option(
          "--llm", llm.urls,
          "Server of a language model, with /v1 and /health below it, or with dns+ in front "
          "of the URL all servers that its name leads to; may be repeated")
      ->type_name("URL")
      ->group(kLlmGroup);
  verb.add_option("--llm-api-key", llm.key.api_key,
                  "Key for these servers (default: the client's, unless --api-key asks for one)")
      ->type_name("KEY")
      ->group(kLlmGroup);
  verb.add_option("--llm-ca-certs", llm.ca_certs,
                  "Who signs their certificates, PEM (default: whom the system trusts)")
      ->type_name("FILE")
      ->group(kLlmGroup);
  add_seconds(verb, "--llm-idle-timeout", llm.idle_timeout, "Between two pieces of an answer");
  add_seconds(verb, "--llm-connect-timeout", llm.connect_timeout, "For a connection");
  add_seconds(verb, "--llm-health-interval", llm.health.interval, "Between two GET /health");
  add_seconds(verb, "--llm-health-timeout", llm.health.timeout, "For the answer to one");
  add_seconds(verb, "--llm-dns-interval", llm.discovery.interval,
              "Between two questions for the name of a dns+ URL");
}

void add_message_flags(CLI::App& verb, ServeFlags& flags) {
  add_choice(verb, "--log-level", flags.log_level, {"debug", "info", "warning", "error"},
             "Log lines from this level on; debug: probes and scrapes, too")
      ->group(kMessageGroup);
  add_choice(verb, "--log-format", flags.log_format, {"text", "json"}, "How log lines look")
      ->group(kMessageGroup);
  verb.add_option("--profile-dir", flags.options.profile_dir,
                  "Folder for what /start_profile and /stop_profile record (default: none)")
      ->type_name("DIR")
      ->group(kMessageGroup);
  verb.add_option("--otlp-endpoint", flags.otlp_endpoint,
                  "Collector of OpenTelemetry that gets traces, for example http://localhost:4318 "
                  "(default: OTEL_EXPORTER_OTLP_ENDPOINT, or none)")
      ->type_name("URL")
      ->group(kMessageGroup);
  verb.add_option("--build-id", flags.options.build_id,
                  "What /version and fovea_build_info show as git, for example a commit")
      ->type_name("TEXT")
      ->group(seldom(kMessageGroup));
}

/// Adds the flags of a server. @param add_own adds those that say what becomes of rows.
template <class AddOwn>
void add_server_flags(CLI::App& verb, ServeFlags& flags, const AddOwn& add_own) {
  constexpr std::int64_t kCacheBytes = std::int64_t{1} << 30;
  add_model(verb, flags.engine);
  add_address_flags(verb, flags);
  add_access_flags(verb, flags);
  add_page_flags(verb, flags.cors);
  add_limit_flags(verb, flags);
  add_source_flags(verb, flags);
  add_own();
  add_message_flags(verb, flags);
  add_seldom_limits(verb, flags);
  add_times(verb, flags);
  add_seldom_fetch_flags(verb, flags.options.media);
  add_threads(verb, flags.engine);
  add_decode_processes(verb, flags.engine);
  EngineOptions& engine = flags.engine.options;
  engine.encoder_cache_bytes = kCacheBytes;
  add_encoder_cache_size(verb, engine);
  engine.cache_dir = user_cache_dir();
  engine.media.limits.max_patches_at_once = 0;  // what the model makes of its largest item
  add_engine_flags(verb, flags.engine);
  verb.get_option("--max-patches-at-once")->default_str("those of the largest item of the model");
  add_configuration(verb, flags.configuration,
                    {"api-key", "admin-api-key", "llm-api-key", "shared-rows", "media-header"});
}

}  // namespace

void add_serve_flags(CLI::App& verb, ServeFlags& flags) {
  add_server_flags(verb, flags, [&] {
    add_publishing_flags(verb, flags);
    add_seldom_publishing_flags(verb, flags);
  });
}

void add_proxy_flags(CLI::App& verb, ServeFlags& flags) {
  constexpr std::chrono::minutes kPatience(10);  // that of OpenAI's SDK
  flags.options.http.request_timeout = kPatience;
  serve::UpstreamOptions& llm = flags.options.llm.emplace();
  add_server_flags(verb, flags, [&] { add_llm_flags(verb, llm); });
}

}  // namespace fovea::cli
