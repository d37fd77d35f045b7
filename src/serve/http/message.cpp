#include "serve/http/message.h"

#include <utility>

namespace fovea::serve {
namespace {

template <typename Bytes>
BodyPart owning_part(Bytes bytes) {
  auto owner = std::make_shared<const Bytes>(std::move(bytes));
  const std::span<const std::byte> span = std::as_bytes(std::span(*owner));
  return {span, std::move(owner)};
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

}  // namespace fovea::serve
