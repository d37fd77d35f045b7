#include "serve/upstream/server_pool.h"

#include <algorithm>
#include <new>
#include <string_view>
#include <utility>

namespace fovea::serve {
namespace {

constexpr std::array<std::string_view, 7> kResultNames{
    "answered", "unavailable", "no_connection", "no_answer", "broken", "late", "stopped"};

}  // namespace

ServerPool::ServerPool(std::vector<std::string> urls, LogSink* log) : log_(log) {
  static_assert(kResultNames.size() == kResults);
  for (std::string& url : urls) servers_.emplace_back(std::move(url));
}

std::vector<std::size_t> ServerPool::candidates(std::span<const std::size_t> tried) const {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    if (servers_[i].is_up && std::ranges::find(tried, i) == tried.end()) found.push_back(i);
  }
  return found;
}

std::size_t ServerPool::least_loaded(std::span<const std::size_t> among) {
  // Equal ones take turns.
  const std::size_t turn = next_++;
  std::size_t least = among[turn % among.size()];
  for (const std::size_t server : among) {
    if (servers_[server].in_flight < servers_[least].in_flight) least = server;
  }
  return least;
}

std::size_t ServerPool::first_of(std::uint64_t key, std::span<const std::size_t> among) const {
  return *std::ranges::max_element(
      among, {}, [&](std::size_t server) { return mix64(key ^ servers_[server].hash); });
}

std::optional<std::size_t> ServerPool::begin(std::string_view key,
                                             std::span<const std::size_t> tried) {
  const std::lock_guard lock(mutex_);
  std::vector<std::size_t> among = candidates(tried);
  if (among.empty()) return std::nullopt;
  std::size_t chosen = least_loaded(among);
  if (!key.empty()) {
    const std::uint64_t hash = fnv1a(key);
    const std::size_t first = first_of(hash, among);
    const std::int64_t least = servers_[chosen].in_flight;
    const std::int64_t most = least + std::max(kMostAhead, least / 4);
    std::erase_if(among, [&](std::size_t server) { return servers_[server].in_flight > most; });
    chosen = first_of(hash, among);
    if (tried.empty()) ++(chosen == first ? sent_first_ : sent_on_);
  }
  ++servers_[chosen].in_flight;
  if (!tried.empty()) ++retries_;
  return chosen;
}

void ServerPool::observe_first_byte(std::size_t server, double seconds) noexcept {
  servers_[server].first_byte.observe(seconds);
}

void ServerPool::end(std::size_t server, UpstreamResult result) noexcept {
  const std::lock_guard lock(mutex_);
  --servers_[server].in_flight;
  ++servers_[server].results[static_cast<std::size_t>(result)];
}

bool ServerPool::has_other(std::span<const std::size_t> tried) const noexcept {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    if (servers_[i].is_up && std::ranges::find(tried, i) == tried.end()) return true;
  }
  return false;
}

bool ServerPool::set_up(std::size_t server, bool is_up) noexcept {
  const std::lock_guard lock(mutex_);
  return std::exchange(servers_[server].is_up, is_up) != is_up;
}

void ServerPool::mark_up(std::size_t server) noexcept try {
  if (set_up(server, true)) log_to(log_, LogLevel::kInfo, "llm_up url=" + url(server));
} catch (const std::bad_alloc&) {
  // There is no memory for a line of the log.
}

void ServerPool::mark_down(std::size_t server, const char* why) noexcept try {
  if (!set_up(server, false)) return;
  log_to(log_, LogLevel::kWarning, "llm_down url=" + url(server) + " reason=\"" + why + "\"");
} catch (const std::bad_alloc&) {
  // Nor for this one.
}

void ServerPool::write(MetricsText& text) const {
  const std::lock_guard lock(mutex_);
  text.gauge("fovea_llm_up", "1 while a language model answers /health.");
  for (const Server& s : servers_) text.sample(std::int64_t{s.is_up ? 1 : 0}, {{"llm", s.url}});
  text.gauge("fovea_llm_in_flight", "Requests that a language model has now.");
  for (const Server& server : servers_) text.sample(server.in_flight, {{"llm", server.url}});
  text.counter("fovea_llm_requests_total",
               "Requests sent to a language model, by what came of it.");
  for (const Server& server : servers_) {
    for (std::size_t i = 0; i < kResults; ++i) {
      text.sample(server.results[i], {{"llm", server.url}, {"result", kResultNames[i]}});
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
  for (const Server& server : servers_) server.first_byte.write(text, {{"llm", server.url}});
}

}  // namespace fovea::serve
