#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/lru.h"
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

/// The language models behind a proxy: which of them work, how much each has to do, and which has
/// seen which image. Thread-safe.
class ServerPool {
 public:
  /// @param urls of the servers, without a slash at the end. All are taken to be down until they
  /// are found to work. @param log may be null; outlives this.
  explicit ServerPool(std::vector<std::string> urls, LogSink* log = nullptr);

  [[nodiscard]] std::size_t size() const noexcept { return servers_.size(); }
  [[nodiscard]] const std::string& url(std::size_t server) const { return servers_[server].url; }

  /// A server for a request, which counts as in flight there until end(): of those that are up and
  /// have not been tried the one with most of its images, unless that has more than
  /// kMostAhead requests, or a quarter, beyond the one with the fewest; else that one. The servers
  /// then has these images. @param keys of its images. @return nothing if there is none.
  [[nodiscard]] std::optional<std::size_t> begin(std::span<const std::string> keys,
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
  static constexpr std::int64_t kMostKeys = 65'536;

 private:
  static constexpr std::size_t kResults = 7;
  struct Server {
    explicit Server(std::string at) : url(std::move(at)) {}

    const std::string url;
    bool is_up = false;
    std::int64_t in_flight = 0;
    std::array<std::int64_t, kResults> results{};
    TimeHistogram first_byte;
  };

  /// Sets whether a server is up. @return whether that is new.
  bool set_up(std::size_t server, bool is_up) noexcept;
  [[nodiscard]] std::vector<std::size_t> candidates(std::span<const std::size_t> tried) const;
  [[nodiscard]] std::size_t least_loaded(std::span<const std::size_t> among);
  /// The one of them with most of the images; nothing if none has any.
  [[nodiscard]] std::optional<std::size_t> keeper(std::span<const std::string> keys,
                                                  std::span<const std::size_t> among) const;
  void remember(std::span<const std::string> keys, std::size_t server);

  LogSink* log_;
  mutable std::mutex mutex_;  // guards what follows but for the URLs
  std::deque<Server> servers_;
  Lru<std::string, std::size_t> homes_{kMostKeys};
  std::size_t next_ = 0;  ///< where the search for the least loaded begins
  std::int64_t kept_ = 0;
  std::int64_t moved_ = 0;
  std::int64_t retries_ = 0;
};

}  // namespace fovea::serve
