#include "serve/routes/conversation.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "serve/api_error.h"
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

const Json& array_at(const Json& json, const std::string& where) {
  if (json.is_array()) return json;
  throw ApiError(400, "invalid_value", where + ": expected an array", where);
}

const MediaKind* find_kind(std::string_view type) {
  const auto* const found = std::ranges::find(kMediaKinds, type, &MediaKind::type);
  return found == kMediaKinds.end() ? nullptr : found;
}

/// What a part without `type` is.
const MediaKind* kind_by_member(Fields& part) {
  const auto* const found = std::ranges::find_if(
      kMediaKinds, [&](const MediaKind& kind) { return part.find(kind.member) != nullptr; });
  return found == kMediaKinds.end() ? nullptr : found;
}

[[noreturn]] void refuse_type(const std::string& type, const Fields& part) {
  const std::string param = part.path("type");
  std::string message = param + ": expected text, image_url, input_image or video_url, got \"" +
                        shortened(type, 60) + "\"";
  if (type.ends_with("_embeds")) message += ": this server makes embeddings and takes none";
  if (type.ends_with("audio") || type == "audio_url") message += ": this server takes no sound";
  throw ApiError(400, "invalid_value", message, param);
}

/// The URL of a part: text, or an object with the member `url`.
std::string read_url(Fields& part, std::string_view member) {
  const std::string path = part.path(member);
  const Json* value = part.find(member);
  if (value == nullptr) {
    throw ApiError(400, "missing_field", path + ": expected a URL, got nothing", path);
  }
  if (!value->is_object()) return *part.text(member);
  Fields fields(*value, path);
  std::optional<std::string> url = fields.text("url");
  refuse_processing_members(fields);
  if (!url) throw ApiError(400, "missing_field", fields.path("url") + ": expected a URL", path);
  return std::move(*url);
}

/// Text that says nothing changes no vector.
void check_text(const std::string& words, const std::string& where, TextRule rule) {
  if (rule == TextRule::kIgnored || words.empty()) return;
  throw ApiError(400, "text_not_supported",
                 where + ": this server encodes images and videos, no text; expected media alone",
                 where);
}

std::optional<MediaPart> parse_part(const Json& json, const std::string& where, TextRule text) {
  if (json.is_string()) {
    check_text(json.get_ref<const std::string&>(), where, text);
    return std::nullopt;
  }
  Fields part(json, where);
  const std::optional<std::string> type = part.text("type");
  const MediaKind* kind = type ? find_kind(*type) : kind_by_member(part);
  if (kind == nullptr) {
    const bool is_text = type ? std::ranges::find(kTextTypes, *type) != kTextTypes.end()
                              : part.find("text") != nullptr;
    if (!is_text) refuse_type(type.value_or(""), part);
    for (const char* member : {"text", "refusal", "thinking", "reasoning"}) {
      const Json* words = text == TextRule::kRefused ? part.find(member) : nullptr;
      if (words != nullptr && words->is_string()) {
        check_text(words->get_ref<const std::string&>(), part.path(member), text);
      }
    }
    return std::nullopt;
  }
  MediaPart media;
  media.reference.modality = kind->modality;
  media.reference.param = part.path(kind->member);
  media.reference.url = read_url(part, kind->member);
  media.uuid = part.text("uuid");
  refuse_processing_members(part);
  media.param = where;
  return media;
}

void append_message(const Json& json, const std::string& where, TextRule text,
                    Conversation& conversation) {
  Fields message(json, where);
  const Json* content = message.find("content");
  if (content == nullptr) return;
  const std::string path = message.path("content");
  if (content->is_string()) return check_text(content->get_ref<const std::string&>(), path, text);
  if (content->is_object()) {  // as some clients send a single part
    if (std::optional<MediaPart> part = parse_part(*content, path, text)) {
      conversation.push_back(std::move(*part));
    }
    return;
  }
  for (std::size_t i = 0; i < array_at(*content, path).size(); ++i) {
    if (std::optional<MediaPart> part = parse_part((*content)[i], element_path(path, i), text)) {
      conversation.push_back(std::move(*part));
    }
  }
}

}  // namespace

void MediaCounter::count(const MediaReference& reference) {
  const bool is_image = reference.modality == Modality::kImage;
  const std::int64_t most = is_image ? limits_.images : limits_.videos;
  if (++(is_image ? images_ : videos_) <= most) return;
  const std::string name = is_image ? "image" : "video";
  throw ApiError(400, is_image ? "too_many_images" : "too_many_videos",
                 reference.param + ": at most " + std::to_string(most) + " " + name +
                     "(s) may be provided in one prompt (--limit-mm-per-prompt)",
                 reference.param);
}

Conversation parse_conversation(const Json& messages, const std::string& where, TextRule text) {
  Conversation conversation;
  for (std::size_t i = 0; i < array_at(messages, where).size(); ++i) {
    append_message(messages[i], element_path(where, i), text, conversation);
  }
  return conversation;
}

Conversation parse_message(const Json& message, const std::string& where, TextRule text) {
  Conversation conversation;
  append_message(message, where, text, conversation);
  return conversation;
}

std::vector<Conversation> parse_conversations(const Json& json, const std::string& where,
                                              TextRule text) {
  std::vector<Conversation> conversations;
  if (array_at(json, where).empty() || !json[0].is_array()) {
    conversations.push_back(parse_conversation(json, where, text));
    return conversations;
  }
  for (std::size_t i = 0; i < json.size(); ++i) {
    conversations.push_back(parse_conversation(json[i], element_path(where, i), text));
  }
  return conversations;
}

}  // namespace fovea::serve
