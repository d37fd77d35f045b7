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
#include "serve/text/object_table.h"

namespace fovea::serve {
namespace {

struct EmbeddingBody : BodyObject, VectorFormMembers, VectorMembers, ProcessingMembers {
  std::optional<std::string_view> model;
  std::optional<JsonView> messages;
  std::optional<JsonView> input;
  std::optional<std::string_view> modality;
  std::optional<bool> per_item;
  std::optional<bool> use_activation;
  std::optional<bool> normalize;
  std::optional<std::int64_t> dimensions;  ///< of vectors
  std::optional<std::string_view> task;    ///< of /pooling
};

/// A URL, a list of them, a conversation or a list of conversations.
JsonObject input_schema(SchemaSet& named) {
  const JsonObject text = schema::text(named);
  return schema::any_of({text, schema::list_of(text, 1), conversations_schema(named)});
}

constexpr std::array<std::string_view, 3> kInputModalities{"image", "video", "text"};
constexpr std::array<Member<EmbeddingBody>, 7> kOwnEmbeddingMembers{
    {{&EmbeddingBody::model, {.name = "model", .about = "The model; without it the only one"}},
     {&EmbeddingBody::input,
      {.name = "input",
       .about = "URLs of images and videos, or conversations with them; it, or messages",
       .schema = input_schema}},
     {&EmbeddingBody::messages,
      {.name = "messages",
       .about = "In place of input, conversations",
       .schema = conversations_schema}},
     {&EmbeddingBody::modality,
      {.name = "modality",
       .about = "What the texts of input are, which may be bare base64 then; text is refused",
       .choices = kInputModalities}},
     {&EmbeddingBody::per_item,
      {.name = "per_item", .about = "Whether each image and video of a conversation has a vector"}},
     {&EmbeddingBody::use_activation,
      {.name = "use_activation", .about = "Whether vectors get the L2 norm 1"}},
     {&EmbeddingBody::normalize, {.name = "normalize", .about = "The same by its old name"}}}};
constexpr auto kVectorBodyMembers = joined<EmbeddingBody>(kOwnEmbeddingMembers, kVectorFormMembers,
                                                          kVectorMembers, kProcessingMembers);
constexpr auto kEmbeddingMembers = joined<EmbeddingBody>(
    kVectorBodyMembers,
    std::array<Member<EmbeddingBody>, 1>{
        {{&EmbeddingBody::dimensions,
          {.name = "dimensions", .about = "How many of the first values are kept", .least = 1}}}});
constexpr auto kPoolingMembers = joined<EmbeddingBody>(
    kVectorBodyMembers,
    std::array<Member<EmbeddingBody>, 2>{
        {{&EmbeddingBody::task, {.name = "task", .about = "token_embed, rows, or embed, a vector"}},
         {Refused{"not supported by this route"}, {.name = "dimensions", .about = ""}}}});
constexpr ObjectTable<EmbeddingBody> kEmbeddingBody{"EmbeddingBody", kEmbeddingMembers};
constexpr ObjectTable<EmbeddingBody> kPoolingBody{"PoolingBody", kPoolingMembers};

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
std::optional<Modality> modality_of(const EmbeddingBody& body) {
  if (!body.modality) return std::nullopt;
  if (*body.modality == "text") refuse_text("modality");
  return *body.modality == "image" ? Modality::kImage : Modality::kVideo;
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

std::vector<MediaReference> read_media(const EmbeddingBody& body, EmbeddingRoute route,
                                       const CallLimits& limits) {
  const bool is_pooling = route == EmbeddingRoute::kPooling;
  const VectorRules rules{
      .per_item = body.per_item.value_or(false),
      .conversation = {.text = is_pooling ? TextRule::kIgnored : TextRule::kRefused,
                       .max_items = limits.max_items},
      .limits = limits.media};
  const std::optional<Modality> modality = modality_of(body);
  if (body.messages.has_value() == body.input.has_value()) {
    throw ApiError(400, body.messages ? "invalid_value" : "missing_field",
                   "expected either input or messages", "input");
  }
  if (body.messages) return media_of(*body.messages, "messages", rules);
  return read_input(*body.input, "input", modality, rules);
}

/// The pooling of /pooling unless `pooling` names another.
Pooling pooling_of_task(const std::optional<std::string_view>& task) {
  if (!task || *task == "token_embed") return Pooling::kNone;
  if (*task == "embed") return Pooling::kMean;
  const bool is_removed = *task == "encode" || *task == "score";
  refuse("task", is_removed
                     ? "\"" + std::string(*task) + "\" was removed; use token_embed or embed"
                     : "expected token_embed or embed, got \"" + shortened(*task, 60) + "\"");
}

RowOptions row_options_of(const EmbeddingBody& body, EmbeddingRoute route, const VectorForm& form) {
  RowOptions rows;
  rows.pooling =
      pooling_of(body.pooling,
                 route == EmbeddingRoute::kPooling ? pooling_of_task(body.task) : Pooling::kMean);
  rows.deepstack = deepstack_of(body.deepstack, rows.pooling);
  rows.dimensions = body.dimensions;
  rows.normalize =
      body.use_activation.value_or(body.normalize.value_or(rows.pooling != Pooling::kNone));
  rows.type = form.type;
  rows.order = form.order;
  return rows;
}

}  // namespace

EmbeddingRequest parse_embedding_request(const SharedJson& json, EmbeddingRoute route,
                                         const CallLimits& limits) {
  const EmbeddingBody body =
      read_object(route == EmbeddingRoute::kPooling ? kPoolingBody : kEmbeddingBody, json->root());
  EmbeddingRequest request;
  request.json = json;
  request.model = body.model.value_or("");
  request.media = read_media(body, route, limits);
  request.form = vector_form(body);
  request.rows = row_options_of(body, route, request.form);
  request.processing = static_cast<const ProcessingMembers&>(body);
  return request;
}

JsonObject embedding_schema(SchemaSet& named) { return describe(kEmbeddingBody, named); }
JsonObject pooling_schema(SchemaSet& named) { return describe(kPoolingBody, named); }

}  // namespace fovea::serve
