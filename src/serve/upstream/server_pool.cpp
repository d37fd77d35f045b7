#include "serve/upstream/server_pool.h"

#include <algorithm>
#include <iterator>
#include <new>
#include <utility>

namespace fovea::serve {
namespace {

constexpr std::array<std::string_view, kUpstreamResults> kResultNames{
    "answered", "unavailable", "no_connection", "no_answer", "broken", "late", "stopped"};

bool is_among(const ServerPool::Server& server, std::span<const ServerPool::Server> servers) {
  return std::ranges::find(servers, server) != servers.end();
}

}  // namespace

ServerPool::ServerPool(std::span<const std::string> urls, LogSink* log) : log_(log) {
  for (const std::string& url : urls) servers_.push_back(std::make_shared<LlmServer>(url));
}

bool ServerPool::set_addresses(const std::string& url, std::span<const std::string> addresses) {
  std::vector<std::string> lines;
  {
    const std::lock_guard lock(mutex_);
    for (const Server& server : servers_) {
      if (server->url_ != url || server->address_.empty()) continue;
      const bool is_gone = std::ranges::find(addresses, server->address_) == addresses.end();
      if (server->is_gone_ == is_gone) continue;
      lines.push_back((is_gone ? "llm_gone " : "llm_found ") + server->text());
      server->is_gone_ = is_gone;
      server->is_up_ = false;
    }
    for (const std::string& address : addresses) {
      const auto is_it = [&](const Server& s) { return s->url_ == url && s->address_ == address; };
      if (std::ranges::any_of(servers_, is_it)) continue;
      const Server& server = servers_.emplace_back(std::make_shared<LlmServer>(url, address));
      lines.push_back("llm_found " + server->text());
    }
    leave_out_idle_gone();
  }
  for (const std::string& line : lines) log_to(log_, LogLevel::kInfo, line);
  return !lines.empty();
}

void ServerPool::leave_out_idle_gone() noexcept {
  std::erase_if(servers_, [](const Server& s) { return s->is_gone_ && s->in_flight_ == 0; });
}

std::vector<ServerPool::Server> ServerPool::servers() const {
  const std::lock_guard lock(mutex_);
  std::vector<Server> found;
  std::ranges::copy_if(servers_, std::back_inserter(found),
                       [](const Server& server) { return !server->is_gone_; });
  return found;
}

std::vector<ServerPool::Server> ServerPool::candidates(std::span<const Server> tried) const {
  std::vector<Server> found;
  std::ranges::copy_if(servers_, std::back_inserter(found), [&](const Server& server) {
    return server->is_up_ && !is_among(server, tried);
  });
  return found;
}

const ServerPool::Server& ServerPool::least_loaded(std::span<const Server> among) {
  // Equal ones take turns.
  const std::size_t turn = next_++;
  const Server* least = &among[turn % among.size()];
  for (const Server& server : among) {
    if (server->in_flight_ < (*least)->in_flight_) least = &server;
  }
  return *least;
}

const ServerPool::Server& ServerPool::first_of(std::uint64_t key, std::span<const Server> among) {
  return *std::ranges::max_element(
      among, {}, [&](const Server& server) { return mix64(key ^ server->hash_); });
}

ServerPool::Server ServerPool::begin(std::string_view key, std::span<const Server> tried) {
  const std::lock_guard lock(mutex_);
  std::vector<Server> among = candidates(tried);
  if (among.empty()) return nullptr;
  Server chosen = least_loaded(among);
  if (!key.empty()) {
    const std::uint64_t hash = fnv1a(key);
    const Server first = first_of(hash, among);
    const std::int64_t least = chosen->in_flight_;
    const std::int64_t most = least + std::max(kMostAhead, least / 4);
    std::erase_if(among, [&](const Server& server) { return server->in_flight_ > most; });
    chosen = first_of(hash, among);
    if (tried.empty()) ++(chosen == first ? sent_first_ : sent_on_);
  }
  ++chosen->in_flight_;
  if (!tried.empty()) ++retries_;
  return chosen;
}

void ServerPool::observe_first_byte(LlmServer& server, double seconds) noexcept {
  server.first_byte_.observe(seconds);
}

void ServerPool::end(const Server& server, UpstreamResult result) noexcept {
  const std::lock_guard lock(mutex_);
  --server->in_flight_;
  ++server->results_[static_cast<std::size_t>(result)];
  leave_out_idle_gone();
}

bool ServerPool::has_other(std::span<const Server> tried) const noexcept {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(
      servers_, [&](const Server& server) { return server->is_up_ && !is_among(server, tried); });
}

bool ServerPool::set_up(LlmServer& server, bool is_up) noexcept {
  const std::lock_guard lock(mutex_);
  if (server.is_gone_) return false;  // an answer to /health came too late
  return std::exchange(server.is_up_, is_up) != is_up;
}

void ServerPool::mark_up(LlmServer& server) noexcept try {
  if (set_up(server, true)) log_to(log_, LogLevel::kInfo, "llm_up " + server.text());
} catch (const std::bad_alloc&) {
  // There is no memory for a line of the log.
}

void ServerPool::mark_down(LlmServer& server, const char* why) noexcept try {
  if (!set_up(server, false)) return;
  log_to(log_, LogLevel::kWarning, "llm_down " + server.text() + " reason=\"" + why + "\"");
} catch (const std::bad_alloc&) {
  // Nor for this one.
}

void ServerPool::write(MetricsText& text) const {
  const std::lock_guard lock(mutex_);
  text.gauge("fovea_llm_up", "1 while a language model answers /health.");
  for (const Server& server : servers_) {
    text.sample(std::int64_t{server->is_up_ ? 1 : 0},
                {{"llm", server->url_}, {"address", server->address_}});
  }
  text.gauge("fovea_llm_in_flight", "Requests that a language model has now.");
  for (const Server& server : servers_)
    text.sample(server->in_flight_, {{"llm", server->url_}, {"address", server->address_}});
  text.counter("fovea_llm_requests_total",
               "Requests sent to a language model, by what came of it.");
  for (const Server& server : servers_) {
    for (std::size_t i = 0; i < kUpstreamResults; ++i) {
      text.sample(
          server->results_[i],
          {{"llm", server->url_}, {"address", server->address_}, {"result", kResultNames[i]}});
    }
  }
  text.counter("fovea_llm_retries_total",
               "Requests that were sent to another language model again.");
  text.sample(retries_);
  text.counter("fovea_llm_routed_total",
               "Requests with images, sent to the server that their first image leads to, or "
               "elsewhere by load.");
  text.sample(sent_first_, {{"sent", "there"}});
  text.sample(sent_on_, {{"sent", "elsewhere"}});
  text.histogram("fovea_llm_first_byte_seconds",
                 "From sending a request to the head of its answer.");
  for (const Server& server : servers_)
    server->first_byte_.write(text, {{"llm", server->url_}, {"address", server->address_}});
}

}  // namespace fovea::serve
