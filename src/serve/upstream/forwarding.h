#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "serve/http/reply_stream.h"
#include "serve/tracing/tracer.h"
#include "serve/upstream/forwarder.h"

namespace fovea::serve {

/// What requests are forwarded with; outlives them.
struct ForwardingParts {
  const UpstreamOptions& options;
  HttpClient& client;
  ServerPool& pool;
};

/// One request on its way to a language model, and the answer on its way back. Lives as long as
/// an event of it may come. After start() it belongs to the thread of the client.
class Forwarding : public std::enable_shared_from_this<Forwarding> {
 public:
  Forwarding(std::shared_ptr<Exchange> exchange, ForwardedCall call, const ForwardingParts& parts);

  /// Sends it; a failure is the reply.
  void start();

 private:
  struct Stop {
    Forwarding* forwarding;
    void operator()() const { forwarding->parts_.client.stop(forwarding->id_); }
  };

  /// Sends it to a server that has not been tried. @throws ApiError if there is none.
  void attempt();
  [[nodiscard]] ClientRequest request() const;
  [[nodiscard]] bool may_ask_another() const noexcept;
  [[nodiscard]] bool take_head(const ClientHead& head);
  [[nodiscard]] bool take_data(std::string_view bytes);
  void take_end(ClientEnd end) noexcept;
  /// Sends it once more, or a refusal.
  void go_on(ClientEnd end);
  void end_stream(ClientEnd end);
  /// Adds the span of this attempt.
  void end_span(ClientEnd end) const;
  /// The last event of a stream that has broken off.
  [[nodiscard]] std::string error_event(ClientEnd end) const;

  const ForwardingParts parts_;
  std::shared_ptr<Exchange> exchange_;  ///< until it has its reply
  ForwardedCall call_;
  const std::stop_token gone_;
  const std::string request_id_;
  const Headers headers_;
  std::vector<ServerPool::Server> tried_;  ///< the last of them has it
  int times_given_ = 0;                    ///< without those that there was no connection to
  Clock::time_point sent_;
  const std::shared_ptr<RequestTrace> trace_;  ///< null: it is not traced
  TraceContext context_;                       ///< of the span of this attempt
  int status_ = 0;                             ///< of the answer; 0: there is none
  std::atomic<HttpClient::Id> id_ = 0;
  std::optional<std::stop_callback<Stop>> on_gone_;
  bool is_unavailable_ = false;  ///< the server has answered 502 or 503, and another may do better
  std::shared_ptr<ReplyStream> stream_;
  bool takes_event_ = false;   ///< it is made of events, and may end with one of ours
  std::string tail_ = "\n\n";  ///< the last bytes of the stream, which tell where an event ends
};

}  // namespace fovea::serve
