#include "serve/upstream/discovery.h"

#include <algorithm>
#include <exception>
#include <system_error>
#include <utility>

#include "fovea/error.h"

namespace fovea::serve {
namespace {

const char* why_none(HostAddresses::Outcome outcome) {
  return outcome == HostAddresses::Outcome::kNoHost ? "it has no address"
                                                    : "no name server has answered";
}

/// The addresses of one family.
std::vector<std::string> servers_of(const std::vector<Address>& addresses) {
  const bool has_v4 = std::ranges::any_of(addresses, [](const Address& a) { return !a.is_v6; });
  std::vector<std::string> servers;
  for (const Address& address : addresses) {
    if (address.is_v6 != has_v4) servers.push_back(address.text());
  }
  return servers;
}

}  // namespace

Discovery::Discovery(std::span<const LlmUrl> urls, DiscoveryOptions options, ServerPool& pool,
                     std::function<void()> on_change, LogSink* log)
    : options_(std::move(options)), pool_(pool), on_change_(std::move(on_change)), log_(log) {
  if (options_.interval <= std::chrono::milliseconds(0)) {
    throw Error(ErrorCode::kInvalidArgument, "--llm-dns-interval: expected more than 0 seconds");
  }
  try {
    for (const LlmUrl& url : urls) {
      if (url.name.empty()) continue;
      threads_.emplace_back([this, url](const std::stop_token& ends) { watch(ends, url); });
    }
  } catch (const std::system_error& error) {
    throw Error(ErrorCode::kIo, std::string("a thread that looks up names: ") + error.what());
  }
}

Discovery::~Discovery() {
  for (std::jthread& thread : threads_) thread.request_stop();  // all before one is waited for
}

void Discovery::watch(const std::stop_token& ends, const LlmUrl& url) {
  bool failed = false;
  while (!ends.stop_requested()) {
    try {
      failed = look_up(url, failed);
    } catch (const std::exception&) {  // NOLINT: there is no memory; the next time there may be
    }
    std::unique_lock lock(mutex_);
    wakes_.wait_for(lock, ends, options_.interval, [] { return false; });
  }
}

bool Discovery::look_up(const LlmUrl& url, bool failed) {
  const HostAddresses found = options_.ask(url.name);
  if (found.outcome != HostAddresses::Outcome::kFound) {
    if (!failed) {
      log_to(log_, LogLevel::kWarning,
             "llm_not_found url=" + url.url + " reason=\"" + why_none(found.outcome) +
                 "\" kept=\"the servers that it had\"");
    }
    return true;
  }
  if (pool_.set_addresses(url.url, servers_of(found.addresses))) on_change_();
  return false;
}

}  // namespace fovea::serve
