#include "serve/upstream/health_checks.h"

#include <atomic>
#include <new>
#include <string>
#include <system_error>
#include <utility>

#include "fovea/error.h"

namespace fovea::serve {

struct HealthChecks::Probe {
  Probe(ServerPool& of, std::size_t index) : pool(of), server(index) {}

  bool take_status(int status) {
    times_late = 0;
    constexpr int kSuccess = 2;
    if (status / 100 == kSuccess) {
      pool.mark_up(server);
    } else {
      pool.mark_down(server, "/health has another status than 2xx");
    }
    return true;
  }
  void take_end(ClientEnd end) {
    constexpr int kMostLate = 1;
    if (end == ClientEnd::kNoConnection) pool.mark_down(server, "no connection");
    if (end == ClientEnd::kNoAnswer) pool.mark_down(server, "no answer to /health");
    if (end == ClientEnd::kLate && ++times_late > kMostLate) {
      pool.mark_down(server, "/health is late");
    }
    is_asked = false;
  }

  ServerPool& pool;
  const std::size_t server;
  int times_late = 0;
  std::atomic<bool> is_asked = false;
};

HealthChecks::HealthChecks(const HealthOptions& options, ServerPool& pool, HttpClient& client)
    : options_(options), client_(client) {
  for (std::size_t i = 0; i < pool.size(); ++i) {
    probes_.push_back(std::make_shared<Probe>(pool, i));
  }
  try {
    thread_ = std::jthread([this](const std::stop_token& ends) { run(ends); });
  } catch (const std::system_error& error) {
    throw Error(ErrorCode::kIo, std::string("a thread for health checks: ") + error.what());
  }
}

HealthChecks::~HealthChecks() = default;

void HealthChecks::run(const std::stop_token& ends) {
  while (!ends.stop_requested()) {
    for (const auto& probe : probes_) {
      try {
        if (!probe->is_asked.exchange(true)) ask(probe);
      } catch (const std::bad_alloc&) {
        probe->is_asked = false;  // and is asked the next time
      }
    }
    std::unique_lock lock(mutex_);
    wakes_.wait_for(lock, ends, options_.interval, [] { return false; });
  }
}

void HealthChecks::ask(const std::shared_ptr<Probe>& probe) {
  ClientRequest request{.method = "GET",
                        .url = probe->pool.url(probe->server) + "/health",
                        .headers = {},
                        .body = {},
                        .connect_timeout = options_.timeout,
                        .head_until = Clock::now() + options_.timeout,
                        .idle_timeout = options_.timeout};
  client_.start(client_.make_id(), std::move(request),
                {.on_head = [probe](const ClientHead& h) { return probe->take_status(h.status); },
                 .on_data = [](std::string_view) { return true; },
                 .on_end = [probe](ClientEnd end) { probe->take_end(end); }});
}

}  // namespace fovea::serve
