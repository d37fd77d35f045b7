#include "serve/routes/cohere/embed_request.h"

#include <optional>
#include <utility>

#include "serve/api_error.h"
#include "serve/routes/call_limits.h"
#include "serve/routes/conversation.h"
#include "serve/routes/output_options.h"
#include "serve/text/object_table.h"

namespace fovea::serve {
namespace {

struct EmbedBody : BodyObject, ProcessingMembers {
  std::optional<std::string_view> model;
  std::optional<std::vector<std::string_view>> images;
  std::optional<JsonView> inputs;
  std::optional<std::vector<std::string_view>> embedding_types;
  std::optional<std::string_view> deepstack;
  std::optional<std::int64_t> output_dimension;
};

constexpr std::array<std::string_view, 2> kEmbedTypes{"float", "base64"};
constexpr std::array<Member<EmbedBody>, 7> kOwnEmbedMembers{
    {{&EmbedBody::model, {.name = "model", .about = "The model; without it the only one"}},
     {&EmbedBody::images,
      {.name = "images", .about = "URLs of images; they, or inputs", .least = 1}},
     {&EmbedBody::inputs,
      {.name = "inputs",
       .about = "In place of images, messages with an image or video each",
       .schema = schema::list<message_schema, 1>}},
     {&EmbedBody::embedding_types,
      {.name = "embedding_types",
       .about = "Forms of the vectors; without it float",
       .choices = kEmbedTypes,
       .least = 1}},
     {&EmbedBody::deepstack, kDeepstackFacts},
     {&EmbedBody::output_dimension,
      {.name = "output_dimension", .about = "How many of the first values are kept", .least = 1}},
     {Refused{"this server encodes images and videos, no text", "text_not_supported"},
      {.name = "texts", .about = ""}}}};
constexpr auto kEmbedMembers = joined<EmbedBody>(kOwnEmbedMembers, kProcessingMembers);
constexpr ObjectTable<EmbedBody> kEmbedBody{"EmbedBody", kEmbedMembers};

/// The one image or video of an input.
MediaReference media_of(const JsonView& input, const std::string& param, std::size_t max_items) {
  Conversation parts =
      parse_message(input, param, {.text = TextRule::kRefused, .max_items = max_items});
  if (parts.empty()) refuse(param, "this server encodes no text", "text_not_supported");
  if (parts.size() > 1) {
    refuse(parts[1].param, "an input has one image or video", "multiple_media_in_conversation");
  }
  return std::move(parts[0].reference);
}

MediaReference embed_image(std::string_view url, std::string param) {
  MediaReference reference;
  reference.url = url;
  reference.param = std::move(param);
  return reference;
}

std::vector<MediaReference> read_embed_media(const EmbedBody& body, std::size_t max_items) {
  if (body.images.has_value() == body.inputs.has_value()) {
    throw ApiError(400, body.images ? "invalid_value" : "missing_field",
                   "expected either images or inputs", "images");
  }
  std::vector<MediaReference> media;
  if (body.images) {
    check_item_count(body.images->size(), max_items);
    for (const std::string_view url : *body.images) {
      media.push_back(embed_image(url, element_path("images", media.size())));
    }
    return media;
  }
  const JsonView& inputs = *body.inputs;
  if (!inputs.is_array() || inputs.num_elements() == 0) {
    refuse("inputs", "expected a list, which is not empty");
  }
  check_item_count(inputs.num_elements(), max_items);
  for (std::size_t i = 0; i < inputs.num_elements(); ++i) {
    media.push_back(media_of(inputs.element(i), element_path("inputs", i), max_items));
  }
  return media;
}

}  // namespace

EmbedRequest parse_embed_request(const SharedJson& json, std::size_t max_items) {
  const EmbedBody body = read_object(kEmbedBody, json->root());
  EmbedRequest request;
  request.json = json;
  request.model = body.model.value_or("");
  request.media = read_embed_media(body, max_items);
  request.types = {"float"};
  if (body.embedding_types) {
    request.types = {body.embedding_types->begin(), body.embedding_types->end()};
  }
  request.rows.pooling = Pooling::kMean;
  request.rows.deepstack = deepstack_of(body.deepstack, request.rows.pooling);
  request.rows.normalize = true;
  request.rows.dimensions = body.output_dimension;
  request.processing = static_cast<const ProcessingMembers&>(body);
  return request;
}

JsonObject embed_schema(SchemaSet& named) { return describe(kEmbedBody, named); }

}  // namespace fovea::serve
