#include "serve/upstream/forwarder.h"

#include <optional>
#include <utility>

#include "fovea/error.h"
#include "fovea/text.h"
#include "serve/text/url.h"
#include "serve/upstream/forwarding.h"

namespace fovea::serve {
namespace {

/// The URL in front of the paths, without a slash at its end.
std::string base_of(const std::string& text) {
  const auto refuse_url = [&](const std::string& why) {
    throw Error(ErrorCode::kInvalidArgument, "--llm " + text + ": " + why);
  };
  const std::optional<Url> url = parse_url(text);
  if (!url) refuse_url("expected http://HOST:PORT or https://HOST:PORT");
  std::string base = url->text();
  while (base.ends_with('/')) base.pop_back();
  if (url->target.find('?') != std::string::npos) refuse_url("expected a URL without a query");
  if (base.ends_with("/v1")) {
    refuse_url("expected the server without /v1, which has /health beside it");
  }
  return base;
}

std::vector<std::string> bases_of(const std::vector<std::string>& urls) {
  if (urls.empty()) throw Error(ErrorCode::kInvalidArgument, "a proxy needs --llm URL");
  std::vector<std::string> bases;
  bases.reserve(urls.size());
  for (const std::string& url : urls) bases.push_back(base_of(url));
  return bases;
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
      pool_(bases_of(options_.urls), log),
      client_(std::make_unique<HttpClient>(ca_certs_of(options_.ca_certs))),
      checks_(std::make_unique<HealthChecks>(options_.health, pool_, *client_)) {}

void Forwarder::forward(std::shared_ptr<Exchange> exchange, ForwardedCall call) {
  const ForwardingParts parts{.options = options_, .client = *client_, .pool = pool_};
  std::make_shared<Forwarding>(std::move(exchange), std::move(call), parts)->start();
}

void Forwarder::check_up() const {
  if (!pool_.has_other({})) throw llm_down();
}

void Forwarder::stop() noexcept {
  checks_.reset();
  client_.reset();
}

}  // namespace fovea::serve
