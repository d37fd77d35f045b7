// Any body of a chat or of a request for embeddings: what is accepted names where each part stands.
#include "serve/routes/conversation.h"

#include "fuzz.h"
#include "serve/api_error.h"
#include "serve/routes/embedding_request.h"

using fovea::serve::ApiError;
using fovea::serve::Conversation;
using fovea::serve::EmbeddingRequest;
using fovea::serve::EmbeddingRoute;
using fovea::serve::Json;
using fovea::test::require;

namespace {

void check_conversations(const Json& messages) {
  std::vector<Conversation> conversations;
  const auto parse = [&] {
    conversations = fovea::serve::parse_conversations(messages, "messages");
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

void check_embeddings(const Json& body, EmbeddingRoute route) {
  EmbeddingRequest request;
  const auto parse = [&] { request = fovea::serve::parse_embedding_request(body, route); };
  if (!fovea::test::accepts<ApiError>(parse)) return;
  require(!request.media.empty());
  require(request.rows.dimensions.value_or(1) >= 1);
  for (const auto& reference : request.media) require(!reference.param.empty());
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Json body;
  const auto parse = [&] {
    body = fovea::serve::parse_json_object(fovea::test::text_of(data, size));
  };
  if (!fovea::test::accepts<ApiError>(parse)) return 0;
  if (body.contains("messages")) check_conversations(body["messages"]);
  check_embeddings(body, EmbeddingRoute::kEmbeddings);
  check_embeddings(body, EmbeddingRoute::kPooling);
  return 0;
}
