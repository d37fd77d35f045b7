#include "serve/routes/conversation.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "serve/api_error.h"
#include "serve/routes/call_limits.h"
#include "serve/routes/processing_options.h"

namespace fovea::serve {
namespace {

/// Parts that name media, and the members that hold them.
struct MediaKind {
  std::string_view type;
  std::string_view member;
  Modality modality;
};
constexpr std::array kMediaKinds{MediaKind{"image_url", "image_url", Modality::kImage},
                                 MediaKind{"input_image", "image_url", Modality::kImage},
                                 MediaKind{"video_url", "video_url", Modality::kVideo}};
constexpr std::array<std::string_view, 6> kTextTypes{"text",    "input_text", "output_text",
                                                     "refusal", "thinking",   "reasoning"};

/// Elements of what has to be an array.
std::size_t count_of(const JsonView& json, const std::string& where) {
  if (json.is_array()) return json.num_elements();
  refuse(where, "expected an array");
}

const MediaKind* find_kind(std::string_view type) {
  const auto* const found = std::ranges::find(kMediaKinds, type, &MediaKind::type);
  return found == kMediaKinds.end() ? nullptr : found;
}

bool is_text_type(std::string_view type) {
  return std::ranges::find(kTextTypes, type) != kTextTypes.end();
}

/// Whether a part is text that is not read. Conversations have much of it, and where it stands need
/// not be known.
bool is_ignored(const JsonView& part, TextRule rule) {
  if (rule != TextRule::kIgnored) return false;
  if (!part.is_object()) return part.is_string();
  const std::optional<JsonView> type = part.find("type");
  if (type) return type->is_string() && is_text_type(type->as_text());
  const bool is_media = std::ranges::any_of(
      kMediaKinds, [&](const MediaKind& kind) { return part.find(kind.member).has_value(); });
  return !is_media && part.find("text");
}

/// Whether a message has nothing but such text.
bool is_ignored_message(const JsonView& message, TextRule rule) {
  if (!message.is_object()) return false;
  const std::optional<JsonView> content = message.find("content");
  return !content || (rule == TextRule::kIgnored && content->is_string());
}

/// The kind of a part without `type`.
const MediaKind* kind_by_member(Fields& part) {
  const auto* const found = std::ranges::find_if(
      kMediaKinds, [&](const MediaKind& kind) { return part.find(kind.member).has_value(); });
  return found == kMediaKinds.end() ? nullptr : found;
}

[[noreturn]] void refuse_type(std::string_view type, const Fields& part) {
  std::string message =
      "expected text, image_url, input_image or video_url, got \"" + shortened(type, 60) + "\"";
  if (type.ends_with("_embeds")) message += ": this server makes embeddings and takes none";
  if (type.ends_with("audio") || type == "audio_url") message += ": this server takes no sound";
  refuse(part.path("type"), message);
}

/// The URL of a part: text, or an object with the member `url`.
std::string_view read_url(Fields& part, std::string_view member, bool takes_options,
                          MediaReference& reference) {
  const std::string path = part.path(member);
  const std::optional<JsonView> value = part.find(member);
  if (!value) {
    refuse(path, "expected a URL, got nothing", "missing_field");
  }
  if (!value->is_object()) return *part.text(member);
  Fields fields(*value, path);
  const std::optional<std::string_view> url = fields.text("url");
  take_item_options(fields, takes_options, reference);
  if (!url) throw ApiError(400, "missing_field", fields.path("url") + ": expected a URL", path);
  return *url;
}

/// Text that says nothing changes no vector.
void check_text(std::string_view words, const std::string& where, TextRule rule) {
  if (rule == TextRule::kIgnored || words.empty()) return;
  refuse(where, "this server encodes images and videos, no text; expected media alone",
         "text_not_supported");
}

std::optional<MediaPart> parse_part(const JsonView& json, const std::string& where,
                                    const ConversationRules& rules) {
  const TextRule text = rules.text;
  if (json.is_string()) {
    check_text(json.as_text(), where, text);
    return std::nullopt;
  }
  Fields part(json, where);
  const std::optional<std::string_view> type = part.text("type");
  const MediaKind* kind = type ? find_kind(*type) : kind_by_member(part);
  if (kind == nullptr) {
    const bool is_text = type ? is_text_type(*type) : part.find("text").has_value();
    if (!is_text) refuse_type(type.value_or(""), part);
    for (const char* member : {"text", "refusal", "thinking", "reasoning"}) {
      const std::optional<JsonView> words = part.find(member);
      if (words && words->is_string()) check_text(words->as_text(), part.path(member), text);
    }
    return std::nullopt;
  }
  MediaPart media;
  media.reference.modality = kind->modality;
  media.reference.param = part.path(kind->member);
  media.reference.url = read_url(part, kind->member, rules.takes_options, media.reference);
  media.uuid = part.text("uuid");
  take_item_options(part, rules.takes_options, media.reference);
  media.param = where;
  return media;
}

void append_part(const JsonView& json, const std::string& where, const ConversationRules& rules,
                 Conversation& conversation) {
  std::optional<MediaPart> part = parse_part(json, where, rules);
  if (!part) return;
  check_item_count(conversation.size() + 1, rules.max_items);
  conversation.push_back(std::move(*part));
}

void append_message(const JsonView& json, const std::string& where, const ConversationRules& rules,
                    Conversation& conversation) {
  Fields message(json, where);
  const std::optional<JsonView> content = message.find("content");
  if (!content) return;
  const std::string path = message.path("content");
  if (content->is_string()) return check_text(content->as_text(), path, rules.text);
  // As some clients send a single part.
  if (content->is_object()) {
    if (!is_ignored(*content, rules.text)) append_part(*content, path, rules, conversation);
    return;
  }
  const std::size_t parts = count_of(*content, path);
  for (std::size_t i = 0; i < parts; ++i) {
    const JsonView part = content->element(i);
    if (!is_ignored(part, rules.text))
      append_part(part, element_path(path, i), rules, conversation);
  }
}

}  // namespace

Conversation parse_conversation(const JsonView& messages, const std::string& where,
                                const ConversationRules& rules) {
  Conversation conversation;
  const std::size_t count = count_of(messages, where);
  for (std::size_t i = 0; i < count; ++i) {
    const JsonView message = messages.element(i);
    if (!is_ignored_message(message, rules.text))
      append_message(message, element_path(where, i), rules, conversation);
  }
  return conversation;
}

Conversation parse_message(const JsonView& message, const std::string& where,
                           const ConversationRules& rules) {
  Conversation conversation;
  append_message(message, where, rules, conversation);
  return conversation;
}

std::vector<Conversation> parse_conversations(const JsonView& json, const std::string& where,
                                              const ConversationRules& rules) {
  std::vector<Conversation> conversations;
  const std::size_t count = count_of(json, where);
  if (count == 0 || !json.element(0).is_array()) {
    conversations.push_back(parse_conversation(json, where, rules));
    return conversations;
  }
  check_item_count(count, rules.max_items);  // each has to have an item
  for (std::size_t i = 0; i < count; ++i) {
    conversations.push_back(parse_conversation(json.element(i), element_path(where, i), rules));
  }
  return conversations;
}

}  // namespace fovea::serve
