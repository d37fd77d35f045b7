#include "serve/media/fetcher.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "serve/api_error.h"
#include "serve/media/items.h"

namespace fovea::serve {
namespace {

using Outcome = TransferReply::Outcome;

/// Fetches that may wait for each one that may run.
constexpr int kWaitingPerThread = 64;

/// One message for all reasons, so that it tells nothing of our network.
ApiError blocked(const Fetch& fetch) {
  return {403, "media_url_blocked",
          "the URL leads to nowhere, or to where this server does not fetch from", fetch.param};
}

ApiError failed(const Fetch& fetch, const std::string& why) {
  return {502, "media_fetch_failed", "fetching the media failed: " + why, fetch.param};
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

/// When a fetch ends at the latest.
struct Fetcher::Limits {
  Limits(const Fetch& fetch, const std::stop_token& ends)
      : until(std::min(Clock::now() + fetch.timeout, fetch.bounds.deadline)),
        by_client(fetch.bounds.stop, Stop{&either}),
        by_end(ends, Stop{&either}) {}

  struct Stop {
    std::stop_source* source;
    void operator()() const { source->request_stop(); }
  };

  Clock::time_point until;
  std::stop_source either;
  std::stop_callback<Stop> by_client;
  std::stop_callback<Stop> by_end;
};

Fetcher::Fetcher(const MediaSourceOptions& options, FetcherHooks hooks)
    : options_(options),
      hooks_(std::move(hooks)),
      lookup_(hooks_.ask, options.max_fetches),
      workers_(options.max_fetches) {}

Fetcher::~Fetcher() { ends_.request_stop(); }

void Fetcher::fetch(Fetch fetch, Done done) {
  if (pending_.fetch_add(1) >= options_.max_fetches * (1 + kWaitingPerThread)) {
    --pending_;
    ApiError busy(429, "queue_full", "too many fetches of media wait", fetch.param);
    busy.retry_after_s = 1;
    throw busy;
  }
  workers_.run([this, fetch = std::move(fetch), done = std::move(done)] {
    std::vector<std::uint8_t> bytes;
    std::exception_ptr error;
    try {
      bytes = run(fetch);
    } catch (...) {
      error = std::current_exception();
    }
    --pending_;
    done(std::move(bytes), error);
  });
}

std::vector<std::uint8_t> Fetcher::run(const Fetch& fetch) {
  const Limits limits(fetch, ends_.get_token());
  std::optional<Url> url = parse_url(fetch.url);
  for (int redirects = 0;; ++redirects) {
    if (!url || !is_permitted(*url)) throw blocked(fetch);
    TransferReply reply = hop(*url, fetch, limits);
    if (!is_redirect(reply)) return body_of(std::move(reply), fetch);
    if (redirects == options_.max_redirects) {
      throw failed(fetch, "more than " + std::to_string(redirects) + " redirects");
    }
    url = redirect_target(*url, reply.location);
  }
}

TransferReply Fetcher::hop(const Url& url, const Fetch& fetch, const Limits& limits) {
  if (Clock::now() >= limits.until) check_outcome(Outcome::kLate, fetch, limits);
  TransferReply reply = get({.url = url,
                             .addresses = addresses(url, fetch, limits),
                             .max_bytes = fetch.max_bytes,
                             .connect_timeout = options_.connect_timeout,
                             .until = limits.until,
                             .stop = limits.either.get_token()});
  check_outcome(reply.outcome, fetch, limits);
  return reply;
}

bool Fetcher::is_permitted(const Url& url) const {
  if (std::ranges::find(options_.allowed_ports, url.port) == options_.allowed_ports.end()) {
    return false;
  }
  return options_.policy != UrlPolicy::kAllowlist || is_listed(url.host, options_.allowed_domains);
}

std::vector<Address> Fetcher::addresses(const Url& url, const Fetch& fetch, const Limits& limits) {
  HostAddresses host{.outcome = HostAddresses::Outcome::kFound, .addresses = {}};
  if (url.kind == HostKind::kName) {
    host = lookup_.find(url.host, limits.until, limits.either.get_token());
  } else if (const auto address = parse_address(url.host)) {
    host.addresses.push_back(*address);
  }
  switch (host.outcome) {
    case HostAddresses::Outcome::kFound: break;
    case HostAddresses::Outcome::kNoHost: throw blocked(fetch);
    case HostAddresses::Outcome::kFailed: throw failed(fetch, "no name server answered");
    case HostAddresses::Outcome::kLate:
      check_outcome(limits.either.stop_requested() ? Outcome::kStopped : Outcome::kLate, fetch,
                    limits);
  }
  const bool any = options_.policy == UrlPolicy::kAny;
  const bool fits = any || std::ranges::all_of(host.addresses, hooks_.is_public);
  if (host.addresses.empty() || !fits) throw blocked(fetch);
  return std::move(host.addresses);
}

void Fetcher::check_outcome(Outcome outcome, const Fetch& fetch, const Limits& limits) const {
  switch (outcome) {
    case Outcome::kReply: return;
    case Outcome::kFailed:
      throw failed(fetch, "no connection to the other server, or it ended early");
    case Outcome::kTooLarge: throw too_large(fetch.modality, fetch.max_bytes, fetch.param);
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
