#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "fovea/call_bounds.h"
#include "serve/media/fair_tasks.h"
#include "serve/media/host_lookup.h"
#include "serve/media/media_source.h"
#include "serve/media/transfer.h"
#include "serve/service/workers.h"

namespace fovea::serve {

/// A fetch for a request.
struct Fetch {
  std::string url;
  Modality modality = Modality::kImage;
  std::size_t max_bytes = 0;
  std::chrono::milliseconds timeout{0};  ///< from its start to its end, with redirects
  CallBounds bounds;                     ///< of the request
  std::string param;                     ///< as in ApiError
  std::string client;                    ///< who asks for it, for its share of the fetches
};

/// The result of a fetch.
struct Fetched {
  std::vector<std::uint8_t> bytes;
  std::shared_ptr<const void> room;  ///< that the bytes take; goes with the last copy
};

/// The network that a Fetcher asks; tests have others.
struct FetcherHooks {
  LookupFunction ask = ask_system;
  std::function<bool(const Address&)> is_public = serve::is_public;
};

/// Fetches media from URLs of strangers without becoming their way into our network. A host is
/// looked up once for each hop; all its addresses have to be permitted, because which of them
/// answers is not ours to choose; and the socket, or the tunnel of a proxy, is made for one of
/// these addresses, so that another answer of the name server changes nothing. Redirects are
/// followed here, each hop by all rules, and none from https to http. What is not permitted, and
/// what does not exist, is refused with the same words before anything is sent. Source:
/// docs/serving.md, "Media".
class Fetcher {
 public:
  /// @param options policy, domains, ports, redirects, connect_timeout, max_fetches,
  /// max_frames and take_room.
  explicit Fetcher(const MediaSourceOptions& options, FetcherHooks hooks = {});
  /// Ends fetches that run or wait, with ApiError(503, "draining"). Waits for name servers that
  /// still owe an answer.
  ~Fetcher();
  Fetcher(const Fetcher&) = delete;
  Fetcher& operator=(const Fetcher&) = delete;

  /// The bytes, or an ApiError: 403 "media_url_blocked"; 422 as too_large(); 422 "media_fetch_4xx"
  /// if the other server wants no such request; 429 "queue_full" without room for them; 502
  /// "media_fetch_failed" for what may work another time; 504 "media_fetch_timeout", and 504
  /// "deadline_exceeded" or 499 "client_closed_request" by the bounds.
  using Done = std::function<void(Fetched fetched, std::exception_ptr error)>;

  /// Fetches; `done` is called once, on a thread of the fetcher, and must not throw.
  /// A client that others wait beside has a share of the fetches at a time (FairTasks).
  /// @throws ApiError(429, "queue_full") if too many wait already; `done` is not called then.
  void fetch(Fetch fetch, Done done);

  /// Headers of the hops to come, in place of MediaSourceOptions::headers.
  void use_headers(FetchHeaders headers);

 private:
  struct Limits;
  using Room = std::vector<std::shared_ptr<void>>;
  [[nodiscard]] Fetched run(const Fetch& fetch, const std::shared_ptr<void>& place);
  [[nodiscard]] TransferReply hop(const Url& url, const Fetch& fetch, const Limits& limits,
                                  Room& room);
  [[nodiscard]] bool is_permitted(const Url& url) const;
  /// Those of a host, or none. @throws ApiError if that cannot be told in time.
  [[nodiscard]] std::vector<Address> lookup(const Url& url, const Fetch& fetch,
                                            const Limits& limits);
  /// Those that the policy permits. Empty: the proxy looks the name up.
  [[nodiscard]] std::vector<Address> addresses(const Url& url, bool through_proxy,
                                               const Fetch& fetch, const Limits& limits);
  void check_outcome(TransferReply::Outcome outcome, const Fetch& fetch,
                     const Limits& limits) const;

  [[nodiscard]] std::shared_ptr<const FetchHeaders> headers() const;

  MediaSourceOptions options_;
  FetcherHooks hooks_;
  mutable std::mutex mutex_;  // guards headers_
  std::shared_ptr<const FetchHeaders> headers_;
  std::stop_source ends_;
  FairTasks turns_;
  HostLookup lookup_;
  Workers workers_;  // last: its end runs what waits
};

}  // namespace fovea::serve
