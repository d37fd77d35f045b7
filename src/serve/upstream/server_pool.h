#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/log.h"
#include "serve/metrics/metrics_text.h"
#include "serve/upstream/llm_server.h"

namespace fovea::serve {

/// The language models behind a proxy: which there are, which of them work, how much each has to
/// do, and which of them an image leads to. That is no memory but a function of the content key of
/// the image and the places of the servers that are up: for each key these stand in an order of its
/// own, by a hash of both, so that all proxies send an image to the same server, in whatever order
/// they know them and whenever they were started. A server that goes takes only the keys that it
/// was the first for, which are spread over the others; one that comes gets an equal part of each
/// of the others, and no other key moves. Thread-safe.
/// Source: Thaler and Ravishankar, "Using name-based mappings to increase hit rates", IEEE/ACM
/// Transactions on Networking 6(1), 1998 (rendezvous hashing).
class ServerPool {
 public:
  /// Whoever holds one may use it also after it has left the pool.
  using Server = std::shared_ptr<LlmServer>;

  /// @param urls of servers, without a slash at the end. All are taken to be down until they are
  /// found to work. @param log may be null; outlives this.
  explicit ServerPool(std::span<const std::string> urls, LogSink* log = nullptr);

  /// The name in a URL leads to these addresses, each of them a server, and to no others. One that
  /// is new is taken to be down; one that is missing gets no further requests, and is forgotten
  /// when its last one has ended. @return whether any came or went.
  bool set_addresses(const std::string& url, std::span<const std::string> addresses);
  /// All but those that are missing, in the order in which they came.
  [[nodiscard]] std::vector<Server> servers() const;

  /// A server for a request, which counts as in flight there until end(). It is one that is up and
  /// has not been tried: the first in the order of the key that has at most kMostAhead requests, or
  /// a quarter, more than the one with the fewest, which therefore always does; without a key the
  /// one with the fewest, where equal ones take turns. Requests are those of this proxy.
  /// @param key of the image that decides; empty: there is none. @return null if there is none.
  [[nodiscard]] Server begin(std::string_view key, std::span<const Server> tried);
  /// Its answer has begun, so many seconds after it was sent.
  static void observe_first_byte(LlmServer& server, double seconds) noexcept;
  void end(const Server& server, UpstreamResult result) noexcept;
  /// Whether begin() would find one.
  [[nodiscard]] bool has_other(std::span<const Server> tried) const noexcept;

  /// A server works.
  void mark_up(LlmServer& server) noexcept;
  /// A server does not. @param why for the log.
  void mark_down(LlmServer& server, const char* why) noexcept;

  /// Writes what is counted of each, by its URL and address.
  void write(MetricsText& text) const;

  static constexpr std::int64_t kMostAhead = 4;

 private:
  /// Sets whether a server is up. @return whether that is new.
  bool set_up(LlmServer& server, bool is_up) noexcept;
  // These under the mutex.
  [[nodiscard]] std::vector<Server> candidates(std::span<const Server> tried) const;
  [[nodiscard]] const Server& least_loaded(std::span<const Server> among);
  /// The first of them in the order of a key.
  [[nodiscard]] static const Server& first_of(std::uint64_t key, std::span<const Server> among);
  void leave_out_idle_gone() noexcept;

  LogSink* log_;
  mutable std::mutex mutex_;  // guards what follows
  std::vector<Server> servers_;
  std::size_t next_ = 0;         ///< where the search for the least loaded begins
  std::int64_t sent_first_ = 0;  ///< requests with images, to the first server of their order
  std::int64_t sent_on_ = 0;     ///< to a later one
  std::int64_t retries_ = 0;
};

}  // namespace fovea::serve
