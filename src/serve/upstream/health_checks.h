#pragma once

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include "serve/upstream/http_client.h"
#include "serve/upstream/server_pool.h"

namespace fovea::serve {

struct HealthOptions {
  std::chrono::milliseconds interval{2'000};  ///< between two probes of a server
  std::chrono::milliseconds timeout{5'000};   ///< for the answer of one
};

/// Asks every server GET /health, at once and then at an interval. One that answers 2xx is up; one
/// that cannot be reached, ends the connection or answers anything else is down, and so is one that
/// is late twice in a row: a server that is busy may be late once.
class HealthChecks {
 public:
  /// @param pool and @param client outlive this; the pool outlives the client, too.
  HealthChecks(const HealthOptions& options, ServerPool& pool, HttpClient& client);
  ~HealthChecks();
  HealthChecks(const HealthChecks&) = delete;
  HealthChecks& operator=(const HealthChecks&) = delete;

 private:
  /// A server while it is asked. Belongs to the thread of the client but for the flag.
  struct Probe;

  void run(const std::stop_token& ends);
  void ask(const std::shared_ptr<Probe>& probe);

  const HealthOptions options_;
  HttpClient& client_;
  std::vector<std::shared_ptr<Probe>> probes_;
  std::mutex mutex_;
  std::condition_variable_any wakes_;
  std::jthread thread_;
};

}  // namespace fovea::serve
