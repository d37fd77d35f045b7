#include "serve/http/message.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "core/json_writer.h"
#include "core/sha256.h"
#include "fovea/text.h"

namespace fovea::serve {
namespace {

template <typename Bytes>
BodyPart owning_part(Bytes bytes) {
  auto owner = std::make_shared<const Bytes>(std::move(bytes));
  const std::span<const std::byte> span = std::as_bytes(std::span(*owner));
  return {span, std::move(owner)};
}

std::mt19937_64 seeded_by_system() {
  std::random_device device;
  std::array<std::uint32_t, 8> words{};
  std::ranges::generate(words, [&] { return static_cast<std::uint32_t>(device()); });
  std::seed_seq seeds(words.begin(), words.end());
  return std::mt19937_64(seeds);
}

}  // namespace

BodyPart body_part(std::string text) { return owning_part(std::move(text)); }

BodyPart body_part(std::vector<std::byte> bytes) { return owning_part(std::move(bytes)); }

std::size_t Reply::size() const {
  std::size_t total = 0;
  for (const BodyPart& part : body) total += part.bytes.size();
  return total;
}

Reply text_reply(int status, std::string content_type, std::string text) {
  Reply reply;
  reply.status = status;
  reply.content_type = std::move(content_type);
  reply.body.push_back(body_part(std::move(text)));
  return reply;
}

Reply json_reply(const JsonObject& json, int status) {
  return text_reply(status, "application/json", to_json_text(json));
}

bool is_request_id(std::string_view text) {
  return !text.empty() && text.size() <= 128 &&
         std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; });
}

RequestIds::RequestIds() : random_(seeded_by_system()) {}

std::string RequestIds::next() {
  const std::array<std::uint64_t, 2> bits{random_(), random_()};
  return "fov-" + to_hex(std::as_bytes(std::span(bits)));
}

std::string_view error_type(int status) {
  switch (status) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 404:
    case 405: return "not_found_error";
    case 408:
    case 504: return "timeout_error";
    case 422: return "unprocessable_media_error";
    case 429: return "overloaded_error";
    case 502: return "upstream_error";
    case 503: return "unavailable_error";
    default: return status < 500 ? "invalid_request_error" : "internal_error";
  }
}

Reply error_reply(const ApiError& error, const RequestHead& head) {
  const std::string message = printable(error.what());
  const std::string param = printable(error.param());
  JsonObject json;
  if (head.path.starts_with("/v2/") && head.path != "/v2/embed") {
    json.set("error", error.code() + ": " + message);
  } else {
    json.set("error", JsonObject{{"message", message},
                                 {"type", error_type(error.status())},
                                 {"param", param.empty() ? std::nullopt : std::optional(param)},
                                 {"code", error.code()},
                                 {"request_id", head.id}});
  }
  Reply reply = text_reply(error.status(), "application/json", to_json_text(json));
  reply.error_code = error.code();
  reply.error_detail = error.detail;
  constexpr int kNoKey = 401;  // whose reply says what is wanted: RFC 9110, 15.5.2
  if (error.status() == kNoKey) reply.headers.push_back({"WWW-Authenticate", "Bearer"});
  if (error.retry_after_s) {
    reply.headers.push_back({"Retry-After", std::to_string(*error.retry_after_s)});
  }
  return reply;
}

}  // namespace fovea::serve
