#include "serve/upstream/forwarder.h"

#include <utility>

#include "fovea/error.h"
#include "fovea/text.h"
#include "serve/upstream/forwarding.h"

namespace fovea::serve {
namespace {

/// The URLs that are one server each.
std::vector<std::string> single_urls(const std::vector<LlmUrl>& urls) {
  std::vector<std::string> single;
  for (const LlmUrl& url : urls) {
    if (url.name.empty()) single.push_back(url.url);
  }
  return single;
}

/// The certificates of a file, which a client checks those of servers against.
std::string ca_certs_of(const std::string& path) {
  if (path.empty()) return {};
  constexpr std::size_t kMaxBytes = std::size_t{4} << 20;
  std::string text = read_text_file(path, kMaxBytes);
  if (text.find("-----BEGIN CERTIFICATE-----") == std::string::npos) {
    throw Error(ErrorCode::kInvalidArgument,
                "--llm-ca-certs " + path + ": it holds no certificate in PEM");
  }
  return text;
}

}  // namespace

ApiError llm_down() {
  ApiError error(503, "llm_down", "no language model answers at the moment");
  error.retry_after_s = 2;
  return error;
}

Forwarder::Forwarder(UpstreamOptions options, LogSink* log)
    : options_(std::move(options)),
      urls_(parse_llm_urls(options_.urls)),
      pool_(single_urls(urls_), log),
      client_(std::make_unique<HttpClient>(ca_certs_of(options_.ca_certs))),
      checks_(std::make_unique<HealthChecks>(options_.health, pool_, *client_)),
      discovery_(std::make_unique<Discovery>(
          urls_, options_.discovery, pool_, [&checks = *checks_] { checks.ask_now(); }, log)) {}

void Forwarder::forward(std::shared_ptr<Exchange> exchange, ForwardedCall call) {
  const ForwardingParts parts{.options = options_, .client = *client_, .pool = pool_};
  std::make_shared<Forwarding>(std::move(exchange), std::move(call), parts)->start();
}

void Forwarder::check_up() const {
  if (!pool_.has_other({})) throw llm_down();
}

void Forwarder::stop() noexcept {
  discovery_.reset();
  checks_.reset();
  client_.reset();
}

}  // namespace fovea::serve
