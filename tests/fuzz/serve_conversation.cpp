// Any body of a chat or of a request for embeddings: what is accepted names where each part stands,
// and nothing takes more memory than its bytes allow.
#include "serve/routes/conversation.h"

#include "budget.h"
#include "serve/api_error.h"
#include "serve/routes/openai/embedding_request.h"

using fovea::serve::ApiError;
using fovea::serve::Conversation;
using fovea::serve::EmbeddingRequest;
using fovea::serve::EmbeddingRoute;
using fovea::serve::SharedJson;
using fovea::test::require;

namespace {

constexpr std::size_t kMaxItems = 8;

void check_conversations(const fovea::JsonView& messages) {
  std::vector<Conversation> conversations;
  const auto parse = [&] {
    conversations =
        fovea::serve::parse_conversations(messages, "messages", {.max_items = kMaxItems});
  };
  if (!fovea::test::accepts<ApiError>(parse)) return;
  require(!conversations.empty());
  for (const Conversation& conversation : conversations) {
    for (const auto& part : conversation) {
      require(part.param.starts_with("messages["));
      require(part.reference.param.starts_with(part.param + "."));
    }
  }
}

void check_embeddings(const SharedJson& body, EmbeddingRoute route) {
  EmbeddingRequest request;
  const auto parse = [&] {
    request = fovea::serve::parse_embedding_request(body, route, {.max_items = kMaxItems});
  };
  if (!fovea::test::accepts<ApiError>(parse)) return;
  require(!request.media.empty());
  require(request.rows.dimensions.value_or(1) >= 1);
  for (const auto& reference : request.media) require(!reference.param.empty());
}

void check(const std::uint8_t* data, std::size_t size) {
  SharedJson body;
  const auto parse = [&] {
    body = fovea::serve::parse_json_object(std::string(fovea::test::text_of(data, size)));
  };
  if (!fovea::test::accepts<ApiError>(parse)) return;
  if (const auto messages = body->root().find("messages")) check_conversations(*messages);
  check_embeddings(body, EmbeddingRoute::kEmbeddings);
  check_embeddings(body, EmbeddingRoute::kPooling);
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fovea::test::within_budget(size, [&] { check(data, size); });
  return 0;
}
