#include "serve/media/host_lookup.h"

#include <netdb.h>

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

namespace fovea::serve {
namespace {

/// An answer on its way from the thread that asks to the one that waits.
class Answer {
 public:
  void set(HostAddresses addresses) {
    {
      const std::lock_guard lock(mutex_);
      addresses_ = std::move(addresses);
    }
    arrived_.notify_all();
  }

  [[nodiscard]] HostAddresses wait(Clock::time_point until, const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    if (!arrived_.wait_until(lock, stop, until, [&] { return addresses_.has_value(); })) {
      return {.outcome = HostAddresses::Outcome::kLate, .addresses = {}};
    }
    return *std::move(addresses_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any arrived_;
  std::optional<HostAddresses> addresses_;
};

}  // namespace

HostAddresses ask_system(const std::string& name) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  const int code = getaddrinfo(name.c_str(), nullptr, &hints, &first);
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(first, freeaddrinfo);
  using Outcome = HostAddresses::Outcome;
  HostAddresses found;
  if (code != 0) {
    const bool is_none = code == EAI_NONAME || code == EAI_NODATA;
    found.outcome = is_none ? Outcome::kNoHost : Outcome::kFailed;
    return found;
  }
  for (const addrinfo* info = first; info != nullptr; info = info->ai_next) {
    if (const auto address = address_of(*info->ai_addr)) found.addresses.push_back(*address);
  }
  found.outcome = found.addresses.empty() ? Outcome::kNoHost : Outcome::kFound;
  return found;
}

HostLookup::HostLookup(LookupFunction ask, int threads) : ask_(std::move(ask)), workers_(threads) {}

HostAddresses HostLookup::find(const std::string& name, Clock::time_point until,
                               const std::stop_token& stop, const std::shared_ptr<void>& place) {
  const auto answer = std::make_shared<Answer>();
  workers_.run([this, answer, name, stop, until, place] {
    HostAddresses addresses;
    try {
      if (!stop.stop_requested() && Clock::now() < until) addresses = ask_(name);
    } catch (...) {  // NOLINT: there is no answer, whatever the reason
    }
    answer->set(std::move(addresses));
  });
  return answer->wait(until, stop);
}

}  // namespace fovea::serve
