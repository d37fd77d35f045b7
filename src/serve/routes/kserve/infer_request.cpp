#include "serve/routes/kserve/infer_request.h"

#include <charconv>
#include <span>
#include <string_view>
#include <utility>

#include "serve/api_error.h"
#include "serve/routes/call_limits.h"
#include "serve/routes/output_options.h"
#include "serve/text/json.h"

namespace fovea::serve {
namespace {

using Bytes = std::span<const std::uint8_t>;

constexpr std::size_t kLengthBytes = 4;
/// There are three; some clients name one twice.
constexpr std::size_t kMaxOutputs = 16;
/// More elements than any server allows; keeps products of shapes in range.
constexpr std::int64_t kMaxElements = 1 << 20;

/// Elements that a shape says there are.
std::size_t read_shape(Fields& input, std::size_t max_items) {
  const std::string path = input.path("shape");
  const std::optional<JsonView> shape = input.find("shape");
  if (!shape || !shape->is_array() || shape->num_elements() == 0) {
    refuse(path, "expected a list of sizes");
  }
  std::int64_t elements = 1;
  for (std::size_t i = 0; i < shape->num_elements(); ++i) {
    const std::optional<std::int64_t> side = shape->element(i).integer();
    if (!side || *side < 0 || *side > kMaxElements) {
      refuse(path, "expected whole numbers up to " + std::to_string(kMaxElements));
    }
    elements *= *side;
    if (elements > kMaxElements) refuse(path, "too many elements");
  }
  check_item_count(static_cast<std::size_t>(elements), max_items);
  return static_cast<std::size_t>(elements);
}

[[noreturn]] void refuse_count(Fields& input, std::size_t elements, const std::string& in_data) {
  refuse(input.path("shape"),
         "the shape has " + std::to_string(elements) + " elements, the data " + in_data);
}

MediaReference reference_at(Modality modality, std::string param) {
  MediaReference reference;
  reference.modality = modality;
  reference.param = std::move(param);
  return reference;
}

/// The elements of a binary tensor: each its length, 32 bits little-endian, and its bytes.
std::vector<MediaReference> split_elements(Fields& input, std::size_t elements, Bytes tensor,
                                           const SharedBytes& body, Modality modality) {
  const std::string param = input.path("data");
  std::vector<MediaReference> media;
  while (!tensor.empty()) {
    if (media.size() == elements) refuse_count(input, elements, "more");
    if (tensor.size() < kLengthBytes) refuse(param, "the data ends within a length");
    std::size_t length = 0;
    for (std::size_t i = kLengthBytes; i-- > 0;) length = length << 8U | tensor[i];
    tensor = tensor.subspan(kLengthBytes);
    if (length > tensor.size()) {
      refuse(param, "an element of " + std::to_string(length) + " bytes, but " +
                        std::to_string(tensor.size()) + " are left");
    }
    media.push_back(reference_at(modality, element_path(param, media.size())));
    media.back().bytes = tensor.first(length);
    media.back().owner = body;
    tensor = tensor.subspan(length);
  }
  return media;
}

std::vector<MediaReference> read_texts(Fields& input, std::size_t elements, Modality modality) {
  const std::string path = input.path("data");
  const std::optional<JsonView> data = input.find("data");
  if (!data || !data->is_array()) refuse(path, "expected a list of base64 texts or URLs");
  if (data->num_elements() != elements)
    refuse_count(input, elements, std::to_string(data->num_elements()));
  std::vector<MediaReference> media;
  for (std::size_t i = 0; i < elements; ++i) {
    const JsonView text = data->element(i);
    media.push_back(reference_at(modality, element_path(path, i)));
    if (!text.is_string()) refuse(media.back().param, "expected base64 or a URL");
    media.back().url = text.as_text();
  }
  return media;
}

/// The size of the tensor's bytes behind the JSON; nothing if it has none there.
std::optional<std::size_t> binary_size(Fields& input) {
  const std::optional<JsonView> parameters = input.find("parameters");
  if (!parameters) return std::nullopt;
  Fields fields(*parameters, input.path("parameters"));
  const std::optional<std::int64_t> size = fields.integer("binary_data_size");
  if (!size) return std::nullopt;
  if (*size < 0) refuse(fields.path("binary_data_size"), "expected 0 or more");
  return static_cast<std::size_t>(*size);
}

/// The one input. @param tail what is behind the JSON.
std::vector<MediaReference> read_input(const JsonView& json, Bytes tail, const SharedBytes& body,
                                       Modality modality, std::size_t max_items) {
  Fields input(json, "inputs[0]");
  const std::string_view name = input.text("name").value_or("");
  if (name != "media") {
    refuse(input.path("name"), "expected media, got \"" + shortened(name, 60) + "\"");
  }
  if (input.text("datatype").value_or("") != "BYTES")
    refuse(input.path("datatype"), "expected BYTES");
  const std::size_t elements = read_shape(input, max_items);
  const std::size_t size = binary_size(input).value_or(0);
  if (size != tail.size()) {
    refuse(input.path("parameters.binary_data_size"),
           "the tensors have " + std::to_string(size) + " bytes, but " +
               std::to_string(tail.size()) + " follow the JSON");
  }
  std::vector<MediaReference> media = binary_size(input)
                                          ? split_elements(input, elements, tail, body, modality)
                                          : read_texts(input, elements, modality);
  if (media.size() != elements) refuse_count(input, elements, std::to_string(media.size()));
  if (media.empty()) refuse(input.path("data"), "there is no item");
  return media;
}

std::vector<InferOutput> read_outputs(Fields& fields, bool binary) {
  std::vector<InferOutput> outputs;
  const std::optional<JsonView> list = fields.find("outputs");
  if (!list) return outputs;
  const std::string path = fields.path("outputs");
  if (!list->is_array()) refuse(path, "expected a list");
  if (list->num_elements() > kMaxOutputs)
    refuse(path, "expected at most " + std::to_string(kMaxOutputs) + " outputs");
  for (std::size_t i = 0; i < list->num_elements(); ++i) {
    Fields output(list->element(i), element_path(path, i));
    InferOutput wanted;
    wanted.binary = binary;
    wanted.name = output.choice("name", {"embeddings", "num_embeds", "grid_thw"}).value_or("");
    if (wanted.name.empty()) refuse(output.path("name"), "expected the name of an output");
    if (const std::optional<JsonView> parameters = output.find("parameters")) {
      Fields inner(*parameters, output.path("parameters"));
      wanted.binary = inner.boolean("binary_data").value_or(binary);
    }
    outputs.push_back(std::move(wanted));
  }
  return outputs;
}

/// The type of the rows: one that the protocol has a name for.
std::optional<ElementType> read_type(Fields& parameters) {
  const std::optional<std::string_view> name = parameters.text("dtype");
  if (!name || *name == "auto") return std::nullopt;
  const std::string path = parameters.path("dtype");
  const ElementType type = element_type(*name, path);
  if (size_of(type) > 1) return type;
  refuse(path, "this protocol has no type of 8 bits", "unsupported_dtype");
}

/// Reads the parameters of the request. @return what the items are.
Modality read_parameters(Fields& fields, InferRequest& request) {
  static const SharedJson kNone = parse_json_object("{}");
  Fields parameters(fields.find("parameters").value_or(kNone->root()), fields.path("parameters"));
  request.binary = parameters.boolean("binary_data_output").value_or(false);
  request.type = read_type(parameters);
  request.pooling = pooling_of(parameters, Pooling::kNone);
  request.deepstack = vector_deepstack_of(parameters, request.pooling);
  if (const std::optional<std::int64_t> timeout = parameters.integer("timeout")) {
    if (*timeout < 0) refuse(parameters.path("timeout"), "expected microseconds");
    if (*timeout > 0) request.timeout = std::chrono::microseconds(*timeout);
  }
  return parameters.choice("modality", {"image", "video"}).value_or("image") == "image"
             ? Modality::kImage
             : Modality::kVideo;
}

InferRequest raw_item(const SharedBytes& body) {
  InferRequest request;
  request.binary = true;
  request.media.push_back(reference_at(Modality::kImage, "body"));
  request.media.back().bytes = *body;
  request.media.back().owner = body;
  return request;
}

}  // namespace

InferRequest parse_infer_request(const SharedBytes& body, std::optional<std::size_t> json_bytes,
                                 std::size_t max_items) {
  if (json_bytes == 0U) return raw_item(body);
  const std::size_t length = json_bytes.value_or(body->size());
  if (length > body->size()) {
    refuse("Inference-Header-Content-Length", "larger than the body");
  }
  const Bytes bytes(*body);
  InferRequest request;
  request.json = parse_json_object({reinterpret_cast<const char*>(bytes.data()), length}, body);
  Fields fields(request.json->root(), "");
  request.id = fields.text("id").value_or("");
  const Modality modality = read_parameters(fields, request);
  const std::optional<JsonView> inputs = fields.find("inputs");
  if (!inputs || !inputs->is_array() || inputs->num_elements() != 1) {
    refuse("inputs", "expected a list with the one input, media");
  }
  request.media = read_input(inputs->element(0), bytes.subspan(length), body, modality, max_items);
  request.outputs = read_outputs(fields, request.binary);
  return request;
}

std::optional<std::size_t> inference_header_length(const Headers& headers) {
  constexpr const char* kName = "Inference-Header-Content-Length";
  const std::string* text = find_header(headers, kName);
  if (text == nullptr) return std::nullopt;
  std::size_t length = 0;
  const char* const end = text->data() + text->size();
  const auto [stop, failure] = std::from_chars(text->data(), end, length);
  if (failure != std::errc{} || stop != end) {
    refuse(kName, "expected a number of bytes, got \"" + shortened(*text, 60) + "\"");
  }
  return length;
}

}  // namespace fovea::serve
