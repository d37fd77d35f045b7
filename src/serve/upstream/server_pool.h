#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/fnv1a.h"
#include "fovea/log.h"
#include "serve/metrics/histogram.h"

namespace fovea::serve {

/// What became of a request at one language model, for its counters.
enum class UpstreamResult : std::uint8_t {
  kAnswered,      ///< with any status, to its end
  kUnavailable,   ///< 502 or 503, and another was asked
  kNoConnection,  ///< ClientEnd of that name, and so on
  kNoAnswer,
  kBroken,
  kLate,
  kStopped,  ///< the client or the proxy has ended it
};

/// The language models behind a proxy: which of them work, how much each has to do, and which of
/// them an image leads to. That is no memory but a function of the content key of the image and the
/// URLs of the servers that are up: for each key these stand in an order of its own, by a hash of
/// both, so that all proxies send an image to the same server, in whatever order they know them and
/// whenever they were started. A server that goes takes only the keys that it was the first for,
/// which are spread over the others; one that comes gets an equal part of each of the others, and
/// no other key moves. Thread-safe.
/// Source: Thaler and Ravishankar, "Using name-based mappings to increase hit rates", IEEE/ACM
/// Transactions on Networking 6(1), 1998 (rendezvous hashing).
class ServerPool {
 public:
  /// @param urls of the servers, without a slash at the end. All are taken to be down until they
  /// are found to work. @param log may be null; outlives this.
  explicit ServerPool(std::vector<std::string> urls, LogSink* log = nullptr);

  [[nodiscard]] std::size_t size() const noexcept { return servers_.size(); }
  [[nodiscard]] const std::string& url(std::size_t server) const { return servers_[server].url; }

  /// A server for a request, which counts as in flight there until end(). It is one that is up and
  /// has not been tried: the first in the order of the key that has at most kMostAhead requests, or
  /// a quarter, more than the one with the fewest, which therefore always does; without a key the
  /// one with the fewest, where equal ones take turns. Requests are those of this proxy.
  /// @param key of the image that decides; empty: there is none. @return nothing if there is none.
  [[nodiscard]] std::optional<std::size_t> begin(std::string_view key,
                                                 std::span<const std::size_t> tried);
  /// Its answer has begun, so many seconds after it was sent.
  void observe_first_byte(std::size_t server, double seconds) noexcept;
  void end(std::size_t server, UpstreamResult result) noexcept;
  /// Whether begin() would find one.
  [[nodiscard]] bool has_other(std::span<const std::size_t> tried) const noexcept;

  /// A server works.
  void mark_up(std::size_t server) noexcept;
  /// A server does not. @param why for the log.
  void mark_down(std::size_t server, const char* why) noexcept;

  /// Writes what is counted of each, by its URL.
  void write(MetricsText& text) const;

  static constexpr std::int64_t kMostAhead = 4;

 private:
  static constexpr std::size_t kResults = 7;
  struct Server {
    explicit Server(std::string at) : url(std::move(at)), hash(mix64(fnv1a(url))) {}

    const std::string url;
    const std::uint64_t hash;  ///< mixed, as URLs differ in few digits
    bool is_up = false;
    std::int64_t in_flight = 0;
    std::array<std::int64_t, kResults> results{};
    TimeHistogram first_byte;
  };

  /// Sets whether a server is up. @return whether that is new.
  bool set_up(std::size_t server, bool is_up) noexcept;
  [[nodiscard]] std::vector<std::size_t> candidates(std::span<const std::size_t> tried) const;
  [[nodiscard]] std::size_t least_loaded(std::span<const std::size_t> among);
  /// The first of them in the order of a key.
  [[nodiscard]] std::size_t first_of(std::uint64_t key, std::span<const std::size_t> among) const;

  LogSink* log_;
  mutable std::mutex mutex_;  // guards what follows but for the URLs
  std::deque<Server> servers_;
  std::size_t next_ = 0;         ///< where the search for the least loaded begins
  std::int64_t sent_first_ = 0;  ///< requests with images, to the first server of their order
  std::int64_t sent_on_ = 0;     ///< to a later one
  std::int64_t retries_ = 0;
};

}  // namespace fovea::serve
