#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "core/fnv1a.h"
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
inline constexpr std::size_t kUpstreamResults = 7;

/// The server of a language model: its place, which never changes, and what a ServerPool knows of
/// it.
class LlmServer {
 public:
  /// @param url as url(). @param address as address().
  explicit LlmServer(std::string url, std::string address = {})
      : url_(std::move(url)), address_(std::move(address)), hash_(mix64(fnv1a(text()))) {}

  /// Below which are /v1 and /health; without a slash at its end.
  [[nodiscard]] const std::string& url() const noexcept { return url_; }
  /// The IP address of a server that the name in the URL leads to, one among others; empty: the URL
  /// leads to this server alone.
  [[nodiscard]] const std::string& address() const noexcept { return address_; }
  /// Both, for lines of the log.
  [[nodiscard]] std::string text() const {
    return "url=" + url_ + (address_.empty() ? "" : " address=" + address_);
  }

  /// Of HealthChecks: whether an answer to /health is awaited.
  std::atomic<bool> is_asked = false;
  /// Of the thread of the client: how many answers to /health in a row were late.
  int times_late = 0;

 private:
  friend class ServerPool;

  const std::string url_;
  const std::string address_;
  const std::uint64_t hash_;  // of both, mixed, as texts of servers differ in few digits

  // Under the mutex of the pool.
  bool is_up_ = false;
  bool is_gone_ = false;  // its name leads there no more
  std::int64_t in_flight_ = 0;
  std::array<std::int64_t, kUpstreamResults> results_{};

  TimeHistogram first_byte_;
};

}  // namespace fovea::serve
