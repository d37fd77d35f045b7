#include "serve/routes/conversation.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "core/check.h"
#include "serve/api_error.h"
#include "serve/routes/call_limits.h"
#include "serve/routes/processing_options.h"
#include "serve/text/object_table.h"

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

/// An object with the URL of an image or video.
struct UrlBody : BodyObject {
  std::optional<std::string_view> url;
  std::optional<JsonView> mm_processor_kwargs;
  NamedValues options;
};
/// A part of a message.
struct PartBody : BodyObject {
  std::optional<std::string_view> type;
  std::optional<std::string_view> uuid;
  std::optional<JsonView> image_url;
  std::optional<JsonView> video_url;
  NamedValues words;  ///< text, wherever it stands
  std::optional<JsonView> mm_processor_kwargs;
  NamedValues options;
};
struct MessageBody : BodyObject {
  std::optional<JsonView> role;
  std::optional<JsonView> content;
};

constexpr const char* kKwargsMember = "mm_processor_kwargs";
constexpr Refused kNotOfItems{
    "this route takes options for the whole request, as mm_processor_kwargs"};
constexpr Refused kElsewhere{"expected options of this item as its mm_processor_kwargs"};
/// Where options of all media of a request stand, somewhere or other.
constexpr std::array<std::string_view, 3> kOptionObjects{"media_io_kwargs", "processor_kwargs",
                                                         "extra_body"};

/// The options of an item in an object, where the route takes them, and where it does not.
template <class T>
constexpr auto option_members() {
  const std::array<Member<T>, 1> own{{{&T::mm_processor_kwargs,
                                       {.name = kKwargsMember,
                                        .about = "Options of the processor for this item",
                                        .schema = schema::object}}}};
  std::array<Member<T>, kOptionObjects.size()> refused{};
  for (std::size_t i = 0; i < refused.size(); ++i) {
    refused[i] = {kElsewhere, {.name = kOptionObjects[i], .about = ""}};
  }
  return joined<T>(processing_members<T>(&T::options, std::array<std::string_view, 0>{}), own,
                   refused);
}
template <class T>
constexpr auto no_option_members() {
  return joined<T>(processing_members<T>(kNotOfItems, kOptionObjects),
                   std::array<Member<T>, 1>{{{kNotOfItems, {.name = kKwargsMember, .about = ""}}}});
}

constexpr std::array<Member<UrlBody>, 1> kUrlMembers{
    {{&UrlBody::url,
      {.name = "url", .about = "A data:, http(s): or file: URL, or base64", .is_required = true}}}};
constexpr auto kUrlWithOptions = joined<UrlBody>(kUrlMembers, option_members<UrlBody>());
constexpr auto kUrlAlone = joined<UrlBody>(kUrlMembers, no_option_members<UrlBody>());
constexpr ObjectTable<UrlBody> kUrl{"MediaUrl", kUrlWithOptions};
constexpr ObjectTable<UrlBody> kPlainUrl{"PlainMediaUrl", kUrlAlone};

template <SchemaOf kUrlSchema>
constexpr std::array<Member<PartBody>, 8> part_members() {
  constexpr SchemaOf kTextOrUrl = schema::either<schema::text, kUrlSchema>;
  return {{{&PartBody::type,
            {.name = "type",
             .about = "image_url, input_image or video_url; parts of text are not read or refused, "
                      "as the route says. Without it the members tell"}},
           {&PartBody::uuid, {.name = "uuid", .about = "The name of the image or video"}},
           {&PartBody::image_url, {.name = "image_url", .about = "An image", .schema = kTextOrUrl}},
           {&PartBody::video_url, {.name = "video_url", .about = "A video", .schema = kTextOrUrl}},
           {&PartBody::words, {.name = "text", .about = "Text"}},
           {&PartBody::words, {.name = "refusal", .about = "Text"}},
           {&PartBody::words, {.name = "thinking", .about = "Text"}},
           {&PartBody::words, {.name = "reasoning", .about = "Text"}}}};
}
constexpr auto kPartWithOptions =
    joined<PartBody>(part_members<schema::body<kUrl>>(), option_members<PartBody>());
constexpr auto kPartAlone =
    joined<PartBody>(part_members<schema::body<kPlainUrl>>(), no_option_members<PartBody>());
constexpr ObjectTable<PartBody> kPart{"ContentPart", kPartWithOptions};
constexpr ObjectTable<PartBody> kPlainPart{"PlainContentPart", kPartAlone};

template <SchemaOf kPartSchema>
constexpr std::array<Member<MessageBody>, 2> message_members() {
  return {{{&MessageBody::role, {.name = "role", .about = "Who says it; not read"}},
           {&MessageBody::content,
            {.name = "content",
             .about = "What is said: text, a part, or parts in order",
             .schema = schema::either<schema::text, kPartSchema,
                                      schema::list<schema::either<schema::text, kPartSchema>>>}}}};
}
constexpr auto kMessageMembers = message_members<schema::body<kPart>>();
constexpr auto kPlainMessageMembers = message_members<schema::body<kPlainPart>>();
constexpr ObjectTable<MessageBody> kMessage{"Message", kMessageMembers};
constexpr ObjectTable<MessageBody> kPlainMessage{"PlainMessage", kPlainMessageMembers};

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

/// The member that holds the media of a kind.
const std::optional<JsonView>& member_of_kind(const PartBody& part, const MediaKind& kind) {
  return kind.member == "image_url" ? part.image_url : part.video_url;
}

/// The kind of a part; null for text.
const MediaKind* kind_of_part(const PartBody& part) {
  if (part.type) return find_kind(*part.type);
  const auto* const found = std::ranges::find_if(
      kMediaKinds, [&](const MediaKind& kind) { return member_of_kind(part, kind).has_value(); });
  return found == kMediaKinds.end() ? nullptr : found;
}

[[noreturn]] void refuse_type(std::string_view type, const PartBody& part) {
  std::string message =
      "expected text, image_url, input_image or video_url, got \"" + shortened(type, 60) + "\"";
  if (type.ends_with("_embeds")) message += ": this server makes embeddings and takes none";
  if (type.ends_with("audio") || type == "audio_url") message += ": this server takes no sound";
  refuse(part.path("type"), message);
}

/// Adds what an object says of the processing of its item.
template <class T>
void add_options(const T& object, MediaReference& reference) {
  add_named_options(object.options, object, reference);
  if (object.mm_processor_kwargs) {
    add_item_options(*object.mm_processor_kwargs, object.path(kKwargsMember), reference);
  }
}

/// Refuses media beside those of the kind that the part is.
void check_no_other(const PartBody& part, const MediaKind& kind) {
  for (const MediaKind& other : kMediaKinds) {
    if (other.member == kind.member || !member_of_kind(part, other)) continue;
    refuse(part.path(other.member),
           cat("comes with ", kind.member, "; expected a part for each of them"));
  }
}

/// The URL of a part: text, or an object with the member `url`.
std::string_view read_url(const std::optional<JsonView>& value, bool takes_options,
                          MediaReference& reference) {
  const std::string& path = reference.param;
  if (!value) refuse(path, "expected a URL, got nothing", "missing_field");
  if (value->is_string()) return value->as_text();
  if (!value->is_object()) refuse(path, "expected text, got " + value->summary());
  const UrlBody object = read_object(takes_options ? kUrl : kPlainUrl, *value, path);
  add_options(object, reference);
  return *object.url;
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
  const PartBody part = read_object(rules.takes_options ? kPart : kPlainPart, json, where);
  const MediaKind* kind = kind_of_part(part);
  if (kind == nullptr) {
    const bool is_text = part.type ? is_text_type(*part.type) : json.find("text").has_value();
    if (!is_text) refuse_type(part.type.value_or(""), part);
  }
  for (const auto& [name, words] : part.words) {
    if (words.is_string()) check_text(words.as_text(), part.path(name), text);
  }
  if (kind == nullptr) return std::nullopt;
  check_no_other(part, *kind);
  MediaPart media;
  media.reference.modality = kind->modality;
  media.reference.param = part.path(kind->member);
  media.reference.url = read_url(member_of_kind(part, *kind), rules.takes_options, media.reference);
  media.uuid = part.uuid;
  add_options(part, media.reference);
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
  const MessageBody message =
      read_object(rules.takes_options ? kMessage : kPlainMessage, json, where);
  const std::optional<JsonView>& content = message.content;
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

JsonObject message_schema(SchemaSet& named) { return describe(kMessage, named); }

JsonObject conversation_schema(SchemaSet& named) { return schema::list_of(message_schema(named)); }

JsonObject plain_conversation_schema(SchemaSet& named) {
  return schema::list_of(describe(kPlainMessage, named));
}

JsonObject conversations_schema(SchemaSet& named) {
  return schema::any_of(
      {conversation_schema(named), schema::list_of(conversation_schema(named), 1)});
}

}  // namespace fovea::serve
