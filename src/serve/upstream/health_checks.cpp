#include "serve/upstream/health_checks.h"

#include <new>
#include <string>
#include <system_error>
#include <utility>

#include "core/check.h"

namespace fovea::serve {
namespace {

void take_status(ServerPool& pool, LlmServer& server, int status) {
  server.times_late = 0;
  constexpr int kSuccess = 2;
  if (status / 100 == kSuccess) {
    pool.mark_up(server);
  } else {
    pool.mark_down(server, "/health has another status than 2xx");
  }
}

void take_end(ServerPool& pool, LlmServer& server, ClientEnd end) {
  constexpr int kMostLate = 1;
  if (end == ClientEnd::kNoConnection) pool.mark_down(server, "no connection");
  if (end == ClientEnd::kNoAnswer) pool.mark_down(server, "no answer to /health");
  if (end == ClientEnd::kLate && ++server.times_late > kMostLate) {
    pool.mark_down(server, "/health is late");
  }
  server.is_asked = false;
}

}  // namespace

HealthChecks::HealthChecks(const HealthOptions& options, ServerPool& pool, HttpClient& client)
    : options_(options), pool_(pool), client_(client) {
  const auto check = [](std::chrono::milliseconds time, const char* flag) {
    FOVEA_CHECK(time > std::chrono::milliseconds(0), kInvalidArgument, flag,
                ": expected more than 0 seconds");
  };
  check(options_.interval, "--llm-health-interval");
  check(options_.timeout, "--llm-health-timeout");
  try {
    thread_ = std::jthread([this](const std::stop_token& ends) { run(ends); });
  } catch (const std::system_error& error) {
    throw Error(ErrorCode::kIo, std::string("a thread for health checks: ") + error.what());
  }
}

HealthChecks::~HealthChecks() = default;

void HealthChecks::ask_now() noexcept {
  {
    const std::lock_guard lock(mutex_);
    is_asked_now_ = true;
  }
  wakes_.notify_one();
}

void HealthChecks::run(const std::stop_token& ends) {
  while (!ends.stop_requested()) {
    try {
      for (const ServerPool::Server& server : pool_.servers()) ask(server);
    } catch (const std::bad_alloc&) {  // NOLINT: they are asked the next time
    }
    std::unique_lock lock(mutex_);
    wakes_.wait_for(lock, ends, options_.interval, [this] { return is_asked_now_; });
    is_asked_now_ = false;
  }
}

void HealthChecks::ask(const ServerPool::Server& server) {
  if (server->is_asked.exchange(true)) return;
  try {
    ClientRequest request{.method = "GET",
                          .url = server->url() + "/health",
                          .address = server->address(),
                          .headers = {},
                          .body = {},
                          .connect_timeout = options_.timeout,
                          .head_until = Clock::now() + options_.timeout,
                          .idle_timeout = options_.timeout};
    client_.start(
        client_.make_id(), std::move(request),
        {.on_head =
             [&pool = pool_, server](const ClientHead& head) {
               take_status(pool, *server, head.status);
               return true;
             },
         .on_data = [](std::string_view) { return true; },
         .on_end = [&pool = pool_, server](ClientEnd end) { take_end(pool, *server, end); }});
  } catch (const std::bad_alloc&) {
    server->is_asked = false;
    throw;
  }
}

}  // namespace fovea::serve
