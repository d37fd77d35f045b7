#include "serve/rows/body_builder.h"

#include <utility>

namespace fovea::serve {

void BodyBuilder::keep(const BodyPart& part) { kept_.emplace(part.bytes.data(), part); }

void BodyBuilder::add(std::span<const std::byte> bytes) {
  const auto found = kept_.find(bytes.data());
  if (found == kept_.end() || found->second.bytes.size() != bytes.size()) {
    copied_.insert(copied_.end(), bytes.begin(), bytes.end());
    return;
  }
  if (bytes.empty()) return;
  end_copied();
  parts_.push_back(found->second);
}

void BodyBuilder::add(std::string_view text) { add(std::as_bytes(std::span(text))); }

ByteSink BodyBuilder::sink() {
  return [this](std::span<const std::byte> bytes) { add(bytes); };
}

std::vector<BodyPart> BodyBuilder::finish(const std::shared_ptr<const void>& room) {
  end_copied();
  for (BodyPart& part : parts_) {
    using Owners = std::pair<std::shared_ptr<const void>, std::shared_ptr<const void>>;
    if (room) part.owner = std::make_shared<const Owners>(std::move(part.owner), room);
  }
  return std::exchange(parts_, {});
}

void BodyBuilder::end_copied() {
  if (!copied_.empty()) parts_.push_back(body_part(std::exchange(copied_, {})));
}

Reply binary_reply(BodyBuilder& body, const std::shared_ptr<const void>& room) {
  Reply reply;
  reply.content_type = "application/octet-stream";
  reply.body = body.finish(room);
  return reply;
}

std::string list_start(const ReplyHead& head, std::string_view object) {
  return "{\"id\":" + json_quote(head.id) + ",\"object\":\"" + std::string(object) +
         "\",\"created\":" + std::to_string(head.created) + ",\"model\":" + json_quote(head.model) +
         ",\"data\":[";
}

JsonObject usage_of(std::int64_t rows) { return {{"prompt_tokens", rows}, {"total_tokens", rows}}; }

Reply json_reply(std::string text, const std::shared_ptr<const void>& room) {
  struct Body {
    std::string text;
    std::shared_ptr<const void> room;
  };
  const auto body = std::make_shared<const Body>(Body{std::move(text), room});
  Reply reply;
  reply.content_type = "application/json";
  reply.body.push_back({std::as_bytes(std::span(body->text)), body});
  return reply;
}

}  // namespace fovea::serve
