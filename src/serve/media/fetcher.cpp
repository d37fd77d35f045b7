#include "serve/media/fetcher.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "serve/api_error.h"
#include "serve/media/resolution.h"

namespace fovea::serve {
namespace {

using Outcome = TransferReply::Outcome;

/// Fetches that may wait, of all clients. One of them may have half, which is enough for a video of
/// the most frames.
std::int64_t most_waiting(const MediaSourceOptions& options) {
  constexpr int kPerThread = 64;
  return 2 * (std::int64_t{options.max_fetches} * (1 + kPerThread) + options.max_frames);
}

/// One message for all reasons, so that it reveals nothing of our network.
ApiError blocked(const Fetch& fetch) {
  return {403, "media_url_blocked",
          "the URL leads to nowhere, or to where this server does not fetch from", fetch.param};
}

ApiError failed(const Fetch& fetch, const std::string& why) {
  return {502, "media_fetch_failed", "fetching the media failed: " + why, fetch.param};
}

ApiError busy(const std::string& why, const Fetch& fetch) {
  ApiError error(429, "queue_full", why, fetch.param);
  error.retry_after_s = 1;
  return error;
}

bool is_redirect(const TransferReply& reply) {
  constexpr int kRedirects[] = {301, 302, 303, 307, 308};
  return std::ranges::find(kRedirects, reply.status) != std::end(kRedirects) &&
         !reply.location.empty();
}

/// The body of the last reply. Statuses that another try may change are the other server's fault.
std::vector<std::uint8_t> body_of(TransferReply reply, const Fetch& fetch) {
  constexpr int kOk = 200;
  constexpr int kRequestTimeout = 408;
  constexpr int kTooManyRequests = 429;
  if (reply.status == kOk) return std::move(reply.body);
  const std::string answered = "the other server answered " + std::to_string(reply.status);
  const bool is_final = reply.status / 100 == 4 && reply.status != kRequestTimeout &&
                        reply.status != kTooManyRequests;
  if (is_final) throw ApiError(422, "media_fetch_4xx", answered, fetch.param);
  throw failed(fetch, answered);
}

}  // namespace

/// When a fetch ends at the latest, and what it holds until then.
struct Fetcher::Limits {
  Limits(const Fetch& fetch, const std::stop_token& ends, std::shared_ptr<void> held)
      : place(std::move(held)),
        until(std::min(Clock::now() + fetch.timeout, fetch.bounds.deadline)),
        by_client(fetch.bounds.stop, Stop{&either}),
        by_end(ends, Stop{&either}) {}

  struct Stop {
    std::stop_source* source;
    void operator()() const { source->request_stop(); }
  };

  std::shared_ptr<void> place;  ///< among the fetches
  Clock::time_point until;
  std::stop_source either;
  std::stop_callback<Stop> by_client;
  std::stop_callback<Stop> by_end;
};

Fetcher::Fetcher(const MediaSourceOptions& options, FetcherHooks hooks)
    : options_(options),
      hooks_(std::move(hooks)),
      headers_(std::make_shared<const FetchHeaders>(options.headers)),
      turns_(options.max_fetches, most_waiting(options),
             [this](std::function<void()> task) { workers_.run(std::move(task)); }),
      lookup_(hooks_.ask, options.max_fetches),
      workers_(options.max_fetches) {}

Fetcher::~Fetcher() {
  ends_.request_stop();
  turns_.end();
}

void Fetcher::fetch(Fetch fetch, Done done) {
  const auto shared = std::make_shared<const Fetch>(std::move(fetch));
  const auto task = [this, shared, done = std::move(done)](const std::shared_ptr<void>& place) {
    Fetched fetched;
    std::exception_ptr error;
    try {
      fetched = run(*shared, place);
    } catch (...) {
      error = std::current_exception();
    }
    done(std::move(fetched), error);
  };
  if (!turns_.add(shared->client, task)) throw busy("too many fetches of media wait", *shared);
}

void Fetcher::use_headers(FetchHeaders headers) {
  auto fresh = std::make_shared<const FetchHeaders>(std::move(headers));
  const std::lock_guard lock(mutex_);
  headers_ = std::move(fresh);
}

std::shared_ptr<const FetchHeaders> Fetcher::headers() const {
  const std::lock_guard lock(mutex_);
  return headers_;
}

Fetched Fetcher::run(const Fetch& fetch, const std::shared_ptr<void>& place) {
  const Limits limits(fetch, ends_.get_token(), place);
  if (const std::optional<std::string> problem = target_problem(fetch.url)) {
    refuse(fetch.param, *problem);
  }
  std::optional<Url> url = parse_url(fetch.url);
  for (int redirects = 0;; ++redirects) {
    if (!url || !is_permitted(*url)) throw blocked(fetch);
    const auto room = std::make_shared<Room>();
    TransferReply reply = hop(*url, fetch, limits, *room);
    if (!is_redirect(reply)) return {body_of(std::move(reply), fetch), room};
    if (redirects == options_.max_redirects) {
      throw failed(fetch, "more than " + std::to_string(redirects) + " redirects");
    }
    url = redirect_target(*url, reply.location);
  }
}

TransferReply Fetcher::hop(const Url& url, const Fetch& fetch, const Limits& limits, Room& room) {
  if (Clock::now() >= limits.until) check_outcome(Outcome::kLate, fetch, limits);
  const auto grant = [&](std::size_t bytes) {
    room.push_back(options_.take_room(bytes));
    return room.back() != nullptr;
  };
  const std::shared_ptr<const FetchHeaders> headers = this->headers();
  const Url* const proxy = options_.proxies.find(url);
  std::optional<ProxyHop> proxy_hop;
  if (proxy != nullptr) {
    proxy_hop = ProxyHop{.url = *proxy,
                         .addresses = lookup(*proxy, fetch, limits),
                         .headers = headers->of_proxy(*proxy)};
    if (proxy_hop->addresses.empty()) throw failed(fetch, "the proxy has no address");
  }
  TransferReply reply = get({.url = url,
                             .addresses = addresses(url, proxy != nullptr, fetch, limits),
                             .headers = headers->of(url),
                             .proxy = std::move(proxy_hop),
                             .max_bytes = fetch.max_bytes,
                             .connect_timeout = options_.connect_timeout,
                             .until = limits.until,
                             .stop = limits.either.get_token(),
                             .grant = options_.take_room ? grant : decltype(Transfer::grant)()});
  check_outcome(reply.outcome, fetch, limits);
  return reply;
}

bool Fetcher::is_permitted(const Url& url) const {
  if (std::ranges::find(options_.allowed_ports, url.port) == options_.allowed_ports.end()) {
    return false;
  }
  return options_.policy != UrlPolicy::kAllowlist || is_listed(url.host, options_.allowed_domains);
}

std::vector<Address> Fetcher::lookup(const Url& url, const Fetch& fetch, const Limits& limits) {
  HostAddresses host{.outcome = HostAddresses::Outcome::kFound, .addresses = {}};
  if (url.kind == HostKind::kName) {
    host = lookup_.find(url.host, limits.until, limits.either.get_token(), limits.place);
  } else if (const auto address = parse_address(url.host)) {
    host.addresses.push_back(*address);
  }
  switch (host.outcome) {
    case HostAddresses::Outcome::kFound: break;
    case HostAddresses::Outcome::kNoHost: return {};
    case HostAddresses::Outcome::kFailed: throw failed(fetch, "no name server answered");
    case HostAddresses::Outcome::kLate:
      check_outcome(limits.either.stop_requested() ? Outcome::kStopped : Outcome::kLate, fetch,
                    limits);
  }
  return std::move(host.addresses);
}

std::vector<Address> Fetcher::addresses(const Url& url, bool through_proxy, const Fetch& fetch,
                                        const Limits& limits) {
  if (through_proxy && options_.proxy_looks_up && url.kind == HostKind::kName) return {};
  std::vector<Address> found = lookup(url, fetch, limits);
  const bool any = options_.policy == UrlPolicy::kAny;
  const bool fits = any || std::ranges::all_of(found, hooks_.is_public);
  if (found.empty() || !fits) throw blocked(fetch);
  return found;
}

void Fetcher::check_outcome(Outcome outcome, const Fetch& fetch, const Limits& limits) const {
  switch (outcome) {
    case Outcome::kReply: return;
    case Outcome::kFailed:
      throw failed(fetch, "no connection to the other server, or it ended early");
    case Outcome::kTooLarge: throw too_large(fetch.modality, fetch.max_bytes, fetch.param);
    case Outcome::kNoRoom:
      throw busy("there is no room for the media now (--max-inflight-bytes)", fetch);
    case Outcome::kStopped:
      if (fetch.bounds.stop.stop_requested()) {
        throw ApiError(499, "client_closed_request", "the client has left", fetch.param);
      }
      throw ApiError(503, "draining", "the server is stopping", fetch.param);
    case Outcome::kLate:
      if (limits.until == fetch.bounds.deadline && Clock::now() >= limits.until) {
        throw ApiError(504, "deadline_exceeded", "the request has run out of time", fetch.param);
      }
      throw ApiError(504, "media_fetch_timeout", "fetching the media took too long", fetch.param);
  }
}

}  // namespace fovea::serve
