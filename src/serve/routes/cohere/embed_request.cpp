#include "serve/routes/cohere/embed_request.h"

#include <optional>
#include <utility>

#include "serve/api_error.h"
#include "serve/routes/call_limits.h"
#include "serve/routes/conversation.h"
#include "serve/routes/output_options.h"

namespace fovea::serve {
namespace {

/// The number of elements of a list.
std::size_t checked_count(const JsonView& json, const std::string& param) {
  if (!json.is_array() || json.num_elements() == 0) {
    refuse(param, "expected a list, which is not empty");
  }
  return json.num_elements();
}

MediaReference image_of(const JsonView& json, const std::string& param) {
  if (!json.is_string()) refuse(param, "expected a URL");
  MediaReference reference;
  reference.url = json.as_text();
  reference.param = param;
  return reference;
}

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

std::vector<MediaReference> read_images_or_inputs(Fields& fields, std::size_t max_items) {
  if (fields.find("texts")) {
    refuse("texts", "this server encodes images and videos, no text", "text_not_supported");
  }
  const std::optional<JsonView> images = fields.find("images");
  const std::optional<JsonView> inputs = fields.find("inputs");
  if (images.has_value() == inputs.has_value()) {
    throw ApiError(400, images ? "invalid_value" : "missing_field",
                   "expected either images or inputs", "images");
  }
  const std::string name = images ? "images" : "inputs";
  const JsonView list = images ? *images : *inputs;
  const std::size_t count = checked_count(list, name);
  check_item_count(count, max_items);
  std::vector<MediaReference> media;
  for (std::size_t i = 0; i < count; ++i) {
    const std::string param = element_path(name, i);
    const JsonView one = list.element(i);
    media.push_back(images ? image_of(one, param) : media_of(one, param, max_items));
  }
  return media;
}

std::set<std::string> read_types(Fields& fields) {
  const std::optional<JsonView> types = fields.find("embedding_types");
  if (!types) return {"float"};
  std::set<std::string> names;
  const std::size_t count = checked_count(*types, "embedding_types");
  for (std::size_t i = 0; i < count; ++i) {
    const JsonView type = types->element(i);
    const std::string_view name = type.is_string() ? type.as_text() : "";
    if (name != "float" && name != "base64") {
      refuse("embedding_types", "expected float or base64");
    }
    names.emplace(name);
  }
  return names;
}

}  // namespace

EmbedRequest parse_embed_request(const SharedJson& body, std::size_t max_items) {
  Fields fields(body->root(), "");
  EmbedRequest request;
  request.json = body;
  request.media = read_images_or_inputs(fields, max_items);
  request.types = read_types(fields);
  request.rows.pooling = Pooling::kMean;
  request.rows.deepstack = vector_deepstack_of(fields, request.rows.pooling);
  request.rows.normalize = true;
  request.rows.dimensions = fields.integer("output_dimension");
  if (request.rows.dimensions.value_or(1) < 1) {
    refuse("output_dimension", "expected 1 or more");
  }
  return request;
}

}  // namespace fovea::serve
