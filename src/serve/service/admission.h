#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <variant>
#include <vector>

#include "serve/api_error.h"
#include "serve/http/key_set.h"
#include "serve/http/server.h"
#include "serve/service/admin_access.h"
#include "serve/service/body_room.h"
#include "serve/service/service.h"

namespace fovea::serve {

/// The clients that may send requests, and how many requests at a time.
struct AdmissionOptions {
  std::vector<std::string> api_keys;  ///< for routes that encode; empty: none is needed
  std::vector<std::string> admin_keys;
  bool auth_all = false;                      ///< API keys for health and metrics, too
  OpenAdmin open_admin = OpenAdmin::kNobody;  ///< without admin keys
  std::int64_t max_concurrent_requests = 512;
};

/// Refused requests, by reason.
struct RefusedStats {
  std::int64_t queue_full = 0;
  std::int64_t no_memory = 0;
  std::int64_t not_ready = 0;
  std::int64_t no_key = 0;
};

/// Decides on a request. When its head is complete and before its body is read: keys, and whether
/// the service is ready and has a place for it now. As the body comes: room for it, of which each
/// client has a share (BodyRoom). When the body is there: the place. Thread-safe.
class Admission {
 public:
  /// @param service must outlive this. @throws Error(kInvalidArgument) for an empty key.
  Admission(AdmissionOptions options, Service& service);

  /// The gate of a Server. Requests that count are those of RouteKind::kWork.
  [[nodiscard]] std::variant<Reply, Permit> admit(const RequestHead& head, const Route& route);

  /// Replaces the keys, for requests to come.
  void set_keys(const std::vector<std::string>& api_keys,
                const std::vector<std::string>& admin_keys);

  [[nodiscard]] std::int64_t in_flight() const noexcept { return in_flight_; }
  [[nodiscard]] RefusedStats refused() const noexcept;

 private:
  struct Keys {
    KeySet api;
    KeySet admin;
  };

  [[nodiscard]] std::shared_ptr<const Keys> keys() const;
  void check_key(const RequestHead& head, const Route& route);
  void check_admin(const RequestHead& head, const Keys& keys);
  void check_state();
  void check_length(const RequestHead& head) const;
  [[nodiscard]] std::function<void(std::uint64_t)> growing(const std::shared_ptr<BodyRoom>& room);
  [[nodiscard]] ApiError no_place();
  [[nodiscard]] std::shared_ptr<void> take_place();

  AdmissionOptions options_;
  Service& service_;
  mutable std::mutex mutex_;  // guards the keys
  std::shared_ptr<const Keys> keys_;
  std::atomic<std::int64_t> in_flight_ = 0;
  std::atomic<std::int64_t> queue_full_ = 0;
  std::atomic<std::int64_t> no_memory_ = 0;
  std::atomic<std::int64_t> not_ready_ = 0;
  std::atomic<std::int64_t> no_key_ = 0;
};

}  // namespace fovea::serve
