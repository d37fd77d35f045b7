#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/media/media_source.h"
#include "serve/text/json.h"
#include "serve/text/schema.h"

namespace fovea::serve {

/// An image or video of a conversation; refers to its JSON.
struct MediaPart {
  MediaReference reference;
  std::optional<std::string_view> uuid;  ///< as the client calls it
  std::string param;                     ///< where the part stands: "messages[0].content[1]"
};

/// The media of a conversation, in the order in which they stand in it.
using Conversation = std::vector<MediaPart>;

/// The treatment of the text of a conversation.
enum class TextRule : std::uint8_t { kIgnored, kRefused };

struct ConversationRules {
  TextRule text = TextRule::kIgnored;
  std::size_t max_items = std::numeric_limits<std::size_t>::max();  ///< --max-items-per-request
  bool takes_options = true;  ///< whether parts may have options of their own
};

/// The media of one conversation: `[{"role": .., "content": text or [part, ..]}, ..]`. Parts are
/// `image_url`, `input_image` and `video_url`, whose value is a URL or {"url": URL}, each with an
/// optional `uuid`; without a `type` the member counts. Options of items stand beside them or
/// in `mm_processor_kwargs` of the part. Members that mean nothing here are ignored. @param where
/// path of the conversation in the request: "messages".
/// @throws ApiError(400, "invalid_value" or "missing_field") that names the part: for embeddings,
/// sound and unknown parts, too, rather than leave them out; "text_not_supported";
/// "too_many_items".
/// Source: OpenAI, API reference, "Chat"; vLLM, docs/features/multimodal_inputs.md.
[[nodiscard]] Conversation parse_conversation(const JsonView& messages, const std::string& where,
                                              const ConversationRules& rules = {});

/// As above for a single message, `{"content": ..}`.
[[nodiscard]] Conversation parse_message(const JsonView& message, const std::string& where,
                                         const ConversationRules& rules = {});

/// As above for one conversation or a list of them, `[[message, ..], ..]`.
[[nodiscard]] std::vector<Conversation> parse_conversations(const JsonView& json,
                                                            const std::string& where,
                                                            const ConversationRules& rules = {});

/// The schemas of a message; of a conversation, whose parts may have options of their own, or may
/// not (`takes_options`); of one conversation or a list of them.
[[nodiscard]] JsonObject message_schema(SchemaSet& named);
[[nodiscard]] JsonObject conversation_schema(SchemaSet& named);
[[nodiscard]] JsonObject plain_conversation_schema(SchemaSet& named);
[[nodiscard]] JsonObject conversations_schema(SchemaSet& named);

}  // namespace fovea::serve
