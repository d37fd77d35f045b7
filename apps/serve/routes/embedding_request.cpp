#include "serve/routes/embedding_request.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "serve/api_error.h"
#include "serve/routes/conversation.h"
#include "serve/routes/output_request.h"

namespace fovea::serve {
namespace {

[[noreturn]] void refuse_text(const std::string& where) {
  throw ApiError(400, "text_not_supported",
                 where +
                     ": this server encodes images and videos, no text; expected URLs that "
                     "begin with data:image/, data:video/, http://, https:// or file://",
                 where);
}

bool is_media_url(std::string_view text) {
  constexpr std::array<std::string_view, 5> kStarts{"data:image/", "data:video/", "http://",
                                                    "https://", "file://"};
  return std::ranges::any_of(kStarts,
                             [&](std::string_view start) { return text.starts_with(start); });
}

/// What `input` holds, if the request says so; then its text may be bare base64, too.
std::optional<Modality> read_modality(Fields& fields) {
  const std::optional<std::string> name = fields.choice("modality", {"image", "video", "text"});
  if (!name) return std::nullopt;
  if (*name == "text") refuse_text(fields.path("modality"));
  return *name == "image" ? Modality::kImage : Modality::kVideo;
}

MediaReference reference_of(const Json& json, const std::string& where,
                            std::optional<Modality> modality) {
  const auto& url = json.get_ref<const std::string&>();
  if (!modality && !is_media_url(url)) refuse_text(where);
  MediaReference reference;
  reference.modality =
      modality.value_or(url.starts_with("data:video/") ? Modality::kVideo : Modality::kImage);
  reference.url = url;
  reference.param = where;
  return reference;
}

/// How conversations become vectors.
struct ConversationRules {
  bool per_item = false;  ///< a vector for each image or video
  TextRule text = TextRule::kRefused;
  PromptLimits limits;  ///< of a conversation; a URL is one of its own
};

/// The media of conversations, a vector each.
std::vector<MediaReference> media_of(const Json& json, const std::string& where,
                                     const ConversationRules& rules) {
  std::vector<MediaReference> media;
  for (Conversation& conversation : parse_conversations(json, where, rules.text)) {
    if (conversation.empty()) refuse_text(where);
    if (conversation.size() > 1 && !rules.per_item) {
      const std::string& second = conversation[1].reference.param;
      throw ApiError(400, "multiple_media_in_conversation",
                     second +
                         ": a conversation has one vector, and so one image or video; "
                         "\"per_item\": true asks for one for each",
                     second);
    }
    MediaCounter counter(rules.limits);
    for (MediaPart& part : conversation) {
      counter.count(part.reference);
      media.push_back(std::move(part.reference));
    }
  }
  return media;
}

std::vector<MediaReference> read_input(const Json& input, const std::string& where,
                                       std::optional<Modality> modality,
                                       const ConversationRules& rules) {
  if (input.is_string()) {
    MediaReference reference = reference_of(input, where, modality);
    MediaCounter(rules.limits).count(reference);
    return {std::move(reference)};
  }
  if (!input.is_array() || input.empty()) {
    throw ApiError(400, "invalid_value", where + ": expected a URL or a list, which is not empty",
                   where);
  }
  const bool is_conversation = input[0].is_object();
  if (is_conversation && !input[0].contains("content") && !input[0].contains("text") &&
      !input[0].contains("role")) {
    const std::string path = element_path(where, 0);
    throw ApiError(400, "invalid_value",
                   path + R"(: expected a URL as text, or a message {"role": .., "content": ..})",
                   path);
  }
  const bool is_conversations = input[0].is_array() && !input[0].empty() && input[0][0].is_object();
  if (is_conversation || is_conversations) return media_of(input, where, rules);
  std::vector<MediaReference> media;
  for (std::size_t i = 0; i < input.size(); ++i) {
    const std::string path = where + "[" + std::to_string(i) + "]";
    if (!input[i].is_string()) refuse_text(path);  // numbers of tokens
    media.push_back(reference_of(input[i], path, modality));
    MediaCounter(rules.limits).count(media.back());
  }
  return media;
}

std::vector<MediaReference> read_media(Fields& fields, EmbeddingRoute route,
                                       const PromptLimits& limits) {
  const ConversationRules rules{
      .per_item = fields.boolean("per_item").value_or(false),
      .text = route == EmbeddingRoute::kPooling ? TextRule::kIgnored : TextRule::kRefused,
      .limits = limits};
  const std::optional<Modality> modality = read_modality(fields);
  const Json* messages = fields.find("messages");
  const Json* input = fields.find("input");
  if ((messages == nullptr) == (input == nullptr)) {
    throw ApiError(400, messages == nullptr ? "missing_field" : "invalid_value",
                   "expected either input or messages", "input");
  }
  if (messages != nullptr) return media_of(*messages, fields.path("messages"), rules);
  return read_input(*input, fields.path("input"), modality, rules);
}

/// What /pooling does unless `pooling` says otherwise.
Pooling pooling_of_task(Fields& fields) {
  const std::optional<std::string> task = fields.text("task");
  if (!task || *task == "token_embed") return Pooling::kNone;
  if (*task == "embed") return Pooling::kMean;
  const std::string param = fields.path("task");
  const bool is_removed = *task == "encode" || *task == "score";
  throw ApiError(400, "invalid_value",
                 param + (is_removed ? ": \"" + *task + "\" was removed; use token_embed or embed"
                                     : ": expected token_embed or embed, got \"" +
                                           shortened(*task, 60) + "\""),
                 param);
}

std::optional<std::int64_t> read_dimensions(Fields& fields, EmbeddingRoute route) {
  const std::optional<std::int64_t> dimensions = fields.integer("dimensions");
  if (!dimensions) return dimensions;
  const std::string param = fields.path("dimensions");
  if (route == EmbeddingRoute::kPooling) {
    throw ApiError(400, "invalid_value", param + ": not supported by this route", param);
  }
  if (*dimensions < 1) {
    throw ApiError(400, "invalid_value", param + ": expected 1 or more", param);
  }
  return dimensions;
}

RowOptions read_rows(Fields& fields, EmbeddingRoute route, const VectorForm& form) {
  RowOptions rows;
  rows.pooling = pooling_of(
      fields, route == EmbeddingRoute::kPooling ? pooling_of_task(fields) : Pooling::kMean);
  rows.deepstack = vector_deepstack_of(fields, rows.pooling);
  rows.dimensions = read_dimensions(fields, route);
  const std::optional<bool> old_name = fields.boolean("normalize");
  rows.normalize =
      fields.boolean("use_activation").value_or(old_name.value_or(rows.pooling != Pooling::kNone));
  rows.type = form.type;
  rows.order = form.order;
  return rows;
}

}  // namespace

EmbeddingRequest parse_embedding_request(const Json& body, EmbeddingRoute route,
                                         const PromptLimits& limits) {
  Fields fields(body, "");
  EmbeddingRequest request;
  request.model = fields.text("model").value_or("");
  request.media = read_media(fields, route, limits);
  request.form = read_vector_form(fields);
  request.rows = read_rows(fields, route, request.form);
  return request;
}

}  // namespace fovea::serve
