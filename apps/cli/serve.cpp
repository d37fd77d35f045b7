// fovea serve, fovea proxy: what their flags ask for. What the servers do is in src/serve.
#include "serve/serve.h"

#include <cstdlib>
#include <iostream>
#include <memory>
#include <optional>
#include <string>

#include "errors.h"
#include "flags/cli11.h"
#include "flags/flags.h"
#include "flags/hub_model.h"
#include "flags/parse.h"
#include "flags/serve_flags.h"
#include "program.h"
#include "report/text.h"

namespace fovea::cli {
namespace {

std::optional<serve::TlsFiles> tls_files(const ServeFlags& flags) {
  if (flags.tls_certificate.empty() != flags.tls_key.empty()) {
    throw UsageError("--ssl-certfile and --ssl-keyfile go together");
  }
  const bool asks_clients = flags.tls_client_certs != "none";
  if (asks_clients == flags.tls_client_ca.empty()) {
    throw UsageError("--ssl-cert-reqs optional or required and --ssl-ca-certs go together");
  }
  if (flags.tls_certificate.empty()) {
    if (asks_clients) throw UsageError("--ssl-cert-reqs needs --ssl-certfile and --ssl-keyfile");
    return std::nullopt;
  }
  return serve::TlsFiles{.certificate = flags.tls_certificate,
                         .key = flags.tls_key,
                         .client_ca = flags.tls_client_ca,
                         .require_client_cert = flags.tls_client_certs == "required"};
}

serve::UrlPolicy url_policy(const ServeFlags& flags) {
  using serve::UrlPolicy;
  const std::string& name = flags.url_policy;
  const bool has_list = !flags.allowed_domains.empty();
  if (name == "allowlist" && !has_list) {
    throw UsageError("--media-url-policy allowlist needs --allowed-media-domains");
  }
  if (has_list && (name == "none" || name == "any")) {
    throw UsageError("--allowed-media-domains: --media-url-policy " + name +
                     " heeds no list of hosts; expected allowlist");
  }
  if (has_list) return UrlPolicy::kAllowlist;
  if (name == "none") return UrlPolicy::kNone;
  return name == "any" ? UrlPolicy::kAny : UrlPolicy::kPublic;
}

serve::ProxyRules proxy_rules(const ServeFlags& flags) {
  serve::ProxyRules rules;
  if (flags.media_proxy == "environment") {
    rules.use_environment([](const char* name) -> const char* { return std::getenv(name); });
  } else if (!flags.media_proxy.empty()) {
    rules.use(flags.media_proxy);
  }
  if (!flags.media_no_proxy.empty()) {
    rules.exclude(split_commas(flags.media_no_proxy), "--media-no-proxy");
  }
  return rules;
}

/// The headers and proxies of fetches.
void set_fetch_options(const ServeFlags& flags, serve::MediaSourceOptions& media) {
  for (const std::string& header : flags.media_headers) media.headers.add(header, "--media-header");
  media.proxies = proxy_rules(flags);
  media.proxy_looks_up = flags.media_proxy_lookup == "proxy";
  if (media.proxy_looks_up && flags.media_proxy.empty()) {
    throw UsageError("--media-proxy-lookup proxy needs --media-proxy");
  }
  if (!flags.media_no_proxy.empty() && flags.media_proxy.empty()) {
    throw UsageError("--media-no-proxy needs --media-proxy");
  }
  if (media.proxy_looks_up && media.policy == serve::UrlPolicy::kPublic) {
    throw UsageError(
        "--media-proxy-lookup proxy: addresses that the proxy looks up cannot be checked for being "
        "public; it needs --media-url-policy allowlist or any");
  }
}

serve::CorsOptions cors_options(const ServeFlags& flags) {
  if (flags.cors.origins.empty() && flags.cors.allow_credentials) {
    throw UsageError("--allow-credentials needs --allowed-origins");
  }
  return flags.cors;
}

serve::ServeOptions serve_options(const ServeFlags& flags, Console& console) {
  serve::ServeOptions options = flags.options;
  options.service.model = flags.engine.model;
  if (options.service.served_name.empty()) {
    options.service.served_name = model_name(flags.engine.model);
  }
  options.service.engine = engine_options(flags.engine, console);
  options.service.batcher.max_delay = std::chrono::microseconds(flags.delay_us);
  options.service.batcher.max_bytes = options.service.max_inflight_bytes;
  options.http.tls = tls_files(flags);
  options.http.cors = serve::Cors(cors_options(flags));
  options.media.policy = url_policy(flags);
  set_fetch_options(flags, options.media);
  options.service.engine.media.limits.max_image_bytes = options.media.max_image_bytes;
  options.service.engine.media.limits.max_video_bytes = options.media.max_video_bytes;
  if (!flags.allowed_domains.empty()) {
    options.media.allowed_domains = split_commas(flags.allowed_domains);
  }
  if (!flags.publish.options.directory.empty()) options.publisher = flags.publish.options;
  options.chat.ec_hash = serve::digest_kind(flags.publish.hash);
  options.admission.open_admin = serve::open_admin(options.http);
  options.tracing = serve::tracing_options(flags.otlp_endpoint,
                                           [](const char* name) { return std::getenv(name); });
  return options;
}

/// What a proxy needs beside the flags of a server.
void check_proxy(const ServeFlags& flags, const serve::ServeOptions& options) {
  if (!options.llm) return;
  if (options.llm->urls.empty()) throw UsageError("--llm is required: the URL of a language model");
  if (flags.engine.options.video_pruning_rate > 0) {
    throw UsageError("--video-pruning-rate: a language model takes no pruned videos as parts");
  }
}

int run_serve(const ServeFlags& flags, Console& console) {
  serve::ServeOptions options = serve_options(flags, console);
  check_proxy(flags, options);
  if (flags.configuration.print) {
    std::cout << settings_table(flags.configuration.settings);
    return kExitOk;
  }
  check_limits(flags.engine, options.service.engine);
  serve::ServerLog log(
      flags.log_format == "json" ? serve::LogFormat::kJson : serve::LogFormat::kText,
      level_of(flags.log_level));
  return serve::serve(std::move(options), log);
}

constexpr const char* kFooter =
    R"(Listens at once and loads the model meanwhile: GET /readyz says when it is ready. SIGTERM ends the
server when its requests have their replies; SIGHUP reads keys, certificates and headers of fetches
again. Every flag may also be given in the environment (--port: FOVEA_PORT) or in a file (--config).
--print-config lists all flags, with limits and times that are seldom changed; docs/serving.md explains
them, and routes and clients.

Examples:
  fovea serve ./Qwen3-VL --port 8080
  curl --data-binary @photo.jpg -H 'Content-Type: image/jpeg' \
    'localhost:8080/v1/encode?output.format=safetensors' -o rows.safetensors
  fovea serve ./Qwen3-VL --host 0.0.0.0 --api-key-file keys.txt --media-url-policy none)";

constexpr const char* kProxyFooter =
    R"(Takes chats of OpenAI's protocol, encodes their images and videos here, sends the rows in their
place to a language model, and streams its answer back. vLLM is started with --enable-mm-embeds for it:

  vllm serve ./Qwen3-VL --port 8001 --enable-mm-embeds
  fovea proxy ./Qwen3-VL --llm http://localhost:8001 --port 8080

then clients use http://localhost:8080/v1 as their base URL. With several --llm a request goes to the one
with the fewest, and a chat with images to the one that its first image leads to, the same from every
proxy. /v1/encode and the other routes of `fovea serve` that encode are there, too. Every flag may also
be given in the environment (--llm: FOVEA_LLM, separated by commas) or in a file (--config).
--print-config lists all flags; docs/proxy.md explains them, docs/fleet.md how many of all parts to run.

Examples:
  fovea proxy ./Qwen3-VL --llm http://10.0.0.1:8000 --llm http://10.0.0.2:8000 --port 8080
  fovea proxy ./Qwen3-VL --llm dns+http://vllm.default.svc:8000    # each address is a server
  fovea proxy ./Qwen3-VL --llm https://llm.example.org --llm-api-key SECRET --api-key-file keys.txt)";

}  // namespace

void add_proxy(CLI::App& app, Program& program) {
  CLI::App* verb =
      app.add_subcommand("proxy", "Encode the images of chats, and let language models answer");
  verb->footer(kProxyFooter);
  const auto flags = std::make_shared<ServeFlags>();
  add_proxy_flags(*verb, *flags);
  verb->callback([flags, &program] {
    program.action = [flags, &program] {
      find_model(flags->engine, program.console);
      return run_serve(*flags, program.console);
    };
  });
}

void add_serve(CLI::App& app, Program& program) {
  CLI::App* verb = app.add_subcommand("serve", "Encode over HTTP, for vLLM and other clients");
  verb->footer(kFooter);
  const auto flags = std::make_shared<ServeFlags>();
  add_serve_flags(*verb, *flags);
  verb->callback([flags, &program] {
    program.action = [flags, &program] {
      find_model(flags->engine, program.console);
      return run_serve(*flags, program.console);
    };
  });
}

}  // namespace fovea::cli
