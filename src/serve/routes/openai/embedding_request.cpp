#include "serve/routes/openai/embedding_request.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "serve/api_error.h"
#include "serve/routes/call_limits.h"
#include "serve/routes/conversation.h"
#include "serve/routes/output_options.h"

namespace fovea::serve {
namespace {

[[noreturn]] void refuse_text(const std::string& where) {
  refuse(where,
         "this server encodes images and videos, no text; expected URLs that "
         "begin with data:image/, data:video/, http://, https:// or file://",
         "text_not_supported");
}

bool is_media_url(std::string_view text) {
  constexpr std::array<std::string_view, 5> kStarts{"data:image/", "data:video/", "http://",
                                                    "https://", "file://"};
  return std::ranges::any_of(kStarts,
                             [&](std::string_view start) { return text.starts_with(start); });
}

/// The kind of media in `input`, if the request names it; then its text may be bare base64, too.
std::optional<Modality> read_modality(Fields& fields) {
  const std::optional<std::string_view> name =
      fields.choice("modality", {"image", "video", "text"});
  if (!name) return std::nullopt;
  if (*name == "text") refuse_text(fields.path("modality"));
  return *name == "image" ? Modality::kImage : Modality::kVideo;
}

MediaReference reference_of(const JsonView& json, const std::string& where,
                            std::optional<Modality> modality) {
  const std::string_view url = json.as_text();
  if (!modality && !is_media_url(url)) refuse_text(where);
  MediaReference reference;
  reference.modality =
      modality.value_or(url.starts_with("data:video/") ? Modality::kVideo : Modality::kImage);
  reference.url = url;
  reference.param = where;
  return reference;
}

/// How conversations become vectors.
struct VectorRules {
  bool per_item = false;  ///< a vector for each image or video
  ConversationRules conversation;
  PromptLimits limits;  ///< of a conversation; a URL is one of its own
};

/// The media of conversations, a vector each.
std::vector<MediaReference> media_of(const JsonView& json, const std::string& where,
                                     const VectorRules& rules) {
  std::vector<MediaReference> media;
  for (Conversation& conversation : parse_conversations(json, where, rules.conversation)) {
    if (conversation.empty()) refuse_text(where);
    if (conversation.size() > 1 && !rules.per_item) {
      const std::string& second = conversation[1].reference.param;
      refuse(second,
             "a conversation has one vector, and so one image or video; "
             "\"per_item\": true asks for one for each",
             "multiple_media_in_conversation");
    }
    MediaCounter counter(rules.limits);
    for (MediaPart& part : conversation) {
      counter.count(part.reference);
      media.push_back(std::move(part.reference));
    }
  }
  return media;
}

/// Refuses an object that begins a list and is no message.
void check_message(const JsonView& first, const std::string& where) {
  if (first.find("content") || first.find("text") || first.find("role")) return;
  const std::string path = element_path(where, 0);
  refuse(path, R"(expected a URL as text, or a message {"role": .., "content": ..})");
}

std::vector<MediaReference> read_input(const JsonView& input, const std::string& where,
                                       std::optional<Modality> modality, const VectorRules& rules) {
  if (input.is_string()) {
    MediaReference reference = reference_of(input, where, modality);
    MediaCounter(rules.limits).count(reference);
    return {std::move(reference)};
  }
  if (!input.is_array() || input.num_elements() == 0) {
    refuse(where, "expected a URL or a list, which is not empty");
  }
  const JsonView first = input.element(0);
  if (first.is_object()) check_message(first, where);
  const bool is_conversations =
      first.is_array() && first.num_elements() > 0 && first.element(0).is_object();
  if (first.is_object() || is_conversations) return media_of(input, where, rules);
  if (!first.is_string()) refuse_text(element_path(where, 0));  // numbers of tokens
  check_item_count(input.num_elements(), rules.conversation.max_items);
  std::vector<MediaReference> media;
  for (std::size_t i = 0; i < input.num_elements(); ++i) {
    const std::string path = element_path(where, i);
    if (!input.element(i).is_string()) refuse_text(path);
    media.push_back(reference_of(input.element(i), path, modality));
    MediaCounter(rules.limits).count(media.back());
  }
  return media;
}

std::vector<MediaReference> read_media(Fields& fields, EmbeddingRoute route,
                                       const CallLimits& limits) {
  const bool is_pooling = route == EmbeddingRoute::kPooling;
  const VectorRules rules{
      .per_item = fields.boolean("per_item").value_or(false),
      .conversation = {.text = is_pooling ? TextRule::kIgnored : TextRule::kRefused,
                       .max_items = limits.max_items},
      .limits = limits.media};
  const std::optional<Modality> modality = read_modality(fields);
  const std::optional<JsonView> messages = fields.find("messages");
  const std::optional<JsonView> input = fields.find("input");
  if (messages.has_value() == input.has_value()) {
    throw ApiError(400, messages ? "invalid_value" : "missing_field",
                   "expected either input or messages", "input");
  }
  if (messages) return media_of(*messages, fields.path("messages"), rules);
  return read_input(*input, fields.path("input"), modality, rules);
}

/// The pooling of /pooling unless `pooling` names another.
Pooling pooling_of_task(Fields& fields) {
  const std::optional<std::string_view> task = fields.text("task");
  if (!task || *task == "token_embed") return Pooling::kNone;
  if (*task == "embed") return Pooling::kMean;
  const bool is_removed = *task == "encode" || *task == "score";
  refuse(fields.path("task"),
         is_removed ? "\"" + std::string(*task) + "\" was removed; use token_embed or embed"
                    : "expected token_embed or embed, got \"" + shortened(*task, 60) + "\"");
}

std::optional<std::int64_t> read_dimensions(Fields& fields, EmbeddingRoute route) {
  const std::optional<std::int64_t> dimensions = fields.integer("dimensions");
  if (!dimensions) return dimensions;
  const std::string param = fields.path("dimensions");
  if (route == EmbeddingRoute::kPooling) {
    refuse(param, "not supported by this route");
  }
  if (*dimensions < 1) {
    refuse(param, "expected 1 or more");
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

EmbeddingRequest parse_embedding_request(const SharedJson& body, EmbeddingRoute route,
                                         const CallLimits& limits) {
  Fields fields(body->root(), "");
  EmbeddingRequest request;
  request.json = body;
  request.model = fields.text("model").value_or("");
  request.media = read_media(fields, route, limits);
  request.form = read_vector_form(fields);
  request.rows = read_rows(fields, route, request.form);
  return request;
}

}  // namespace fovea::serve
