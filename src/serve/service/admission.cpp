#include "serve/service/admission.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "serve/http/message.h"
#include "serve/text/url.h"

namespace fovea::serve {
namespace {

/// The key that a client gives: "Authorization: Bearer <key>" or "X-API-Key: <key>".
std::optional<std::string_view> given_key(const RequestHead& head) {
  if (const std::string* key = find_header(head.headers, "X-API-Key")) return *key;
  const std::string* authorization = find_header(head.headers, "Authorization");
  return authorization == nullptr ? std::nullopt : bearer_key(*authorization);
}

}  // namespace

Admission::Admission(AdmissionOptions options, Service& service)
    : options_(std::move(options)), service_(service) {
  set_keys(options_.api_keys, options_.admin_keys);
}

void Admission::set_keys(const std::vector<std::string>& api_keys,
                         const std::vector<std::string>& admin_keys) {
  auto keys = std::make_shared<const Keys>(Keys{KeySet(api_keys), KeySet(admin_keys)});
  const std::lock_guard lock(mutex_);
  keys_ = std::move(keys);
}

std::shared_ptr<const Admission::Keys> Admission::keys() const {
  const std::lock_guard lock(mutex_);
  return keys_;
}

void Admission::check_admin(const RequestHead& head, const Keys& keys) {
  const auto refuse = [this](const char* code, const std::string& message) {
    ++no_key_;
    throw ApiError(403, code, message);
  };
  if (has_foreign_origin(head.headers)) {
    refuse("foreign_origin", "this route answers no page of another host: Origin is not Host");
  }
  const std::optional<std::string_view> key = given_key(head);
  if (key && keys.admin.contains(*key)) return;
  const std::string need = "this route needs an admin key (--admin-api-key)";
  if (!keys.admin.empty()) refuse("admin_required", need);
  const std::string objection = objection_to(head, options_.open_admin);
  if (!objection.empty()) refuse("admin_required", need + ", " + objection);
}

void Admission::check_key(const RequestHead& head, const Route& route) {
  const std::shared_ptr<const Keys> keys = this->keys();
  if (route.kind == RouteKind::kAdmin) return check_admin(head, *keys);
  const std::optional<std::string_view> key = given_key(head);
  if (keys->api.empty() || (route.kind == RouteKind::kService && !options_.auth_all)) return;
  if (key && (keys->api.contains(*key) || keys->admin.contains(*key))) return;
  ++no_key_;
  throw ApiError(401, "invalid_api_key",
                 "expected \"Authorization: Bearer <key>\" or \"X-API-Key: <key>\" with a key of "
                 "this server");
}

void Admission::check_state() try { service_.check_takes_work(); } catch (const ApiError&) {
  ++not_ready_;
  throw;
}

ApiError Admission::no_place() {
  ++queue_full_;
  ApiError error(429, "queue_full",
                 "there are " + std::to_string(options_.max_concurrent_requests) +
                     " requests already (--max-concurrent-requests)");
  error.retry_after_s = service_.retry_after_s();
  return error;
}

std::shared_ptr<void> Admission::take_place() {
  if (++in_flight_ > options_.max_concurrent_requests) {
    --in_flight_;
    throw no_place();
  }
  return {this, [](Admission* admission) { --admission->in_flight_; }};
}

void Admission::check_length(const RequestHead& head) const {
  const std::size_t most = BodyRoom::largest(service_.memory());
  if (!head.content_length || *head.content_length <= most) return;
  throw ApiError(413, "body_too_large",
                 "the body has " + std::to_string(*head.content_length) +
                     " bytes, and a client "
                     "may hold " +
                     std::to_string(most) + ", half of --max-inflight-bytes");
}

std::function<void(std::uint64_t)> Admission::growing(const std::shared_ptr<BodyRoom>& room) {
  return [this, &room = *room](std::uint64_t bytes) {
    if (room.grow(bytes)) return;
    ++no_memory_;
    ApiError error(429, "queue_full",
                   "there is no room for more of the body now: a client holds at most as much as "
                   "is left for others (--max-inflight-bytes)");
    error.retry_after_s = service_.retry_after_s();
    throw error;
  };
}

std::variant<Reply, Permit> Admission::admit(const RequestHead& head, const Route& route) try {
  check_key(head, route);
  Permit permit;
  if (route.kind == RouteKind::kWork) {
    check_state();
    // Spares a body that would be refused; the place is taken when the body is there.
    if (in_flight_ >= options_.max_concurrent_requests) throw no_place();
    permit.enter = [this] { return take_place(); };
  }
  if (head.content_length == 0) return permit;
  check_length(head);
  const auto room = std::make_shared<BodyRoom>(service_.memory(), head.client);
  permit.grow = growing(room);
  permit.room = room;
  return permit;
} catch (const ApiError& error) {
  return error_reply(error, head);
}

RefusedStats Admission::refused() const noexcept {
  return {.queue_full = queue_full_,
          .no_memory = no_memory_,
          .not_ready = not_ready_,
          .no_key = no_key_};
}

}  // namespace fovea::serve
