#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "fovea/log.h"
#include "serve/media/host_lookup.h"
#include "serve/upstream/llm_url.h"
#include "serve/upstream/server_pool.h"

namespace fovea::serve {

struct DiscoveryOptions {
  std::chrono::milliseconds interval{5'000};  ///< between two questions for a name
  LookupFunction ask = ask_system;            ///< tests have another one
};

/// Asks for the addresses of names, at once and then at an interval, and tells a pool which servers
/// these are: those of IPv4 if there are any, else those of IPv6, so that a server with both is
/// there once. A name that has no addresses, or whose name servers do not answer, keeps those that
/// it had: health checks know which of them work. Each name has a thread, so that none waits for
/// another.
class Discovery {
 public:
  /// @param urls of which those with a name are asked for. @param pool outlives this.
  /// @param on_change called when servers came or went, from any thread; must not throw.
  /// @param log may be null; outlives this. @throws Error(kInvalidArgument) for an interval of 0,
  /// Error(kIo) if there are no threads to be had.
  Discovery(std::span<const LlmUrl> urls, DiscoveryOptions options, ServerPool& pool,
            std::function<void()> on_change, LogSink* log);
  /// Waits for name servers that still owe an answer.
  ~Discovery();
  Discovery(const Discovery&) = delete;
  Discovery& operator=(const Discovery&) = delete;

 private:
  void watch(const std::stop_token& ends, const LlmUrl& url);
  /// @param failed whether the last one has; for the log. @return whether this one has.
  [[nodiscard]] bool look_up(const LlmUrl& url, bool failed);

  const DiscoveryOptions options_;
  ServerPool& pool_;
  const std::function<void()> on_change_;
  LogSink* log_;
  std::mutex mutex_;
  std::condition_variable_any wakes_;
  std::vector<std::jthread> threads_;  // last: they use the others
};

}  // namespace fovea::serve
