#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>

#include "serve/upstream/http_client.h"
#include "serve/upstream/server_pool.h"

namespace fovea::serve {

struct HealthOptions {
  std::chrono::milliseconds interval{2'000};  ///< between two probes of a server
  std::chrono::milliseconds timeout{5'000};   ///< for the answer of one
};

/// Asks every server of a pool GET /health, at once and then at an interval. One that answers 2xx
/// is up; one that cannot be reached, ends the connection or answers anything else is down, and so
/// is one that is late twice in a row: a server that is busy may be late once.
class HealthChecks {
 public:
  /// @param pool and @param client outlive this; the pool outlives the client, too.
  /// @throws Error(kInvalidArgument) for times of 0, Error(kIo) without a thread.
  HealthChecks(const HealthOptions& options, ServerPool& pool, HttpClient& client);
  ~HealthChecks();
  HealthChecks(const HealthChecks&) = delete;
  HealthChecks& operator=(const HealthChecks&) = delete;

  /// Asks all servers now, for example because there are new ones.
  void ask_now() noexcept;

 private:
  void run(const std::stop_token& ends);
  void ask(const ServerPool::Server& server);

  const HealthOptions options_;
  ServerPool& pool_;
  HttpClient& client_;
  std::mutex mutex_;  // guards the flag
  bool is_asked_now_ = false;
  std::condition_variable_any wakes_;
  std::jthread thread_;
};

}  // namespace fovea::serve
