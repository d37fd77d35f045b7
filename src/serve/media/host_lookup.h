#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "serve/http/address_rules.h"
#include "serve/http/message.h"
#include "serve/service/workers.h"

namespace fovea::serve {

/// The addresses of a name, as far as they are known.
struct HostAddresses {
  enum class Outcome : std::uint8_t {
    kFound,   ///< it has addresses
    kNoHost,  ///< it has none
    kFailed,  ///< no server answered; another time may do
    kLate,    ///< no answer in time
  };
  Outcome outcome = Outcome::kFailed;
  std::vector<Address> addresses;  ///< of all families, in the order to try them
};

/// Asks for a name; waits as long as it takes.
using LookupFunction = std::function<HostAddresses(const std::string& name)>;

/// The system's resolver: hosts file, DNS and what else it has. Source: getaddrinfo(3).
[[nodiscard]] HostAddresses ask_system(const std::string& name);

/// Asks for names on threads of its own, because the system's resolver cannot be interrupted: whom
/// it takes too long leaves it behind.
class HostLookup {
 public:
  HostLookup(LookupFunction ask, int threads);

  /// The addresses of a name, or kLate when the time has come or stop is requested.
  /// @param place held until the question has its answer, which may be later. May be null.
  [[nodiscard]] HostAddresses find(const std::string& name, Clock::time_point until,
                                   const std::stop_token& stop,
                                   const std::shared_ptr<void>& place = nullptr);

 private:
  LookupFunction ask_;
  Workers workers_;  // last: its end waits for questions that were left behind
};

}  // namespace fovea::serve
