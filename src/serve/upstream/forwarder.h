#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "fovea/log.h"
#include "serve/http/exchange.h"
#include "serve/metrics/metrics_text.h"
#include "serve/upstream/discovery.h"
#include "serve/upstream/health_checks.h"
#include "serve/upstream/http_client.h"
#include "serve/upstream/llm_url.h"
#include "serve/upstream/passed_headers.h"
#include "serve/upstream/server_pool.h"

namespace fovea::serve {

/// The language models of a proxy, and how long they may take.
struct UpstreamOptions {
  std::vector<std::string> urls;  ///< as parse_llm_urls() reads them
  UpstreamKey key;
  std::string ca_certs;  ///< file of PEM with who signs their certificates; empty: the system knows
  std::chrono::milliseconds connect_timeout{2'000};
  std::chrono::milliseconds idle_timeout{60'000};  ///< between two pieces of an answer
  HealthOptions health;
  DiscoveryOptions discovery;
};

/// A request for a language model.
struct ForwardedCall {
  std::string method = "POST";  ///< or "GET"
  std::string target;           ///< path and query: "/v1/chat/completions"
  std::vector<BodyPart> body;
  std::string key;        ///< content key of its first image or video; empty: it has none
  Headers reply_headers;  ///< added to those of the answer
};

/// Sends requests to language models and their answers to clients. Thread-safe.
class Forwarder {
 public:
  /// @param log may be null; outlives this.
  /// @throws as parse_llm_urls(); Error(kInvalidArgument) for a file without certificates, or
  /// errors of reading it; Error(kIo) if there are no threads to be had.
  explicit Forwarder(UpstreamOptions options, LogSink* log = nullptr);

  /// Sends a request to the language model that ServerPool chooses, and its answer to the client as
  /// it comes, with its status and headers. Returns at once. As long as nothing of an answer has
  /// been sent, it is sent to another one after a connection that could not be made or has ended
  /// without the head of an answer, and after 502 and 503; to each at most once, and to at most
  /// four that there was a connection to. Ends with the client. What becomes of the rest: ApiError
  /// 503 "llm_down" if none is up, 502 "llm_failed" if none is left, 504 "deadline_exceeded", 503
  /// "draining".
  void forward(std::shared_ptr<Exchange> exchange, ForwardedCall call);
  /// @throws ApiError(503, "llm_down") if no language model is up: spares work that nobody would
  /// use.
  void check_up() const;
  void write(MetricsText& text) const { pool_.write(text); }
  /// Ends all requests. Nothing is forwarded afterwards. Waits for name servers that still owe an
  /// answer.
  void stop() noexcept;

 private:
  const UpstreamOptions options_;
  const std::vector<LlmUrl> urls_;
  ServerPool pool_;
  std::unique_ptr<HttpClient> client_;
  std::unique_ptr<HealthChecks> checks_;
  std::unique_ptr<Discovery> discovery_;
};

/// @throws ApiError(503, "llm_down") that names no server.
[[nodiscard]] ApiError llm_down();

}  // namespace fovea::serve
