#include "serve/routes/kserve/infer_request.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <span>
#include <string_view>
#include <utility>

#include "serve/api_error.h"
#include "serve/routes/call_limits.h"
#include "serve/routes/output_options.h"
#include "serve/text/object_table.h"

namespace fovea::serve {
namespace {

using Bytes = std::span<const std::uint8_t>;

constexpr std::size_t kLengthBytes = 4;
/// There are three; some clients name one twice.
constexpr std::size_t kMaxOutputs = 16;
/// More elements than any server allows; keeps products of shapes in range.
constexpr std::int64_t kMaxElements = 1 << 20;

struct InferBody : BodyObject {
  std::optional<std::string_view> id;
  std::optional<JsonView> parameters;
  std::optional<JsonView> inputs;
  std::optional<JsonView> outputs;
};
struct InferParameters : BodyObject, VectorMembers {
  std::optional<bool> binary_data_output;
  std::optional<std::string_view> dtype;
  std::optional<std::string_view> modality;
  std::optional<std::int64_t> timeout;
};
struct InferInputBody : BodyObject {
  std::optional<std::string_view> name;
  std::optional<std::string_view> datatype;
  std::optional<JsonView> shape;
  std::optional<JsonView> data;
  std::optional<JsonView> parameters;
};
struct InputParameters : BodyObject {
  std::optional<std::int64_t> binary_data_size;
};
struct InferOutputBody : BodyObject {
  std::optional<std::string_view> name;
  std::optional<JsonView> parameters;
};
struct OutputParameters : BodyObject {
  std::optional<bool> binary_data;
};

constexpr std::array<std::string_view, 1> kInputName{"media"};
constexpr std::array<std::string_view, 1> kInputType{"BYTES"};
constexpr std::array<std::string_view, 3> kInferOutputNames{"embeddings", "num_embeds", "grid_thw"};
constexpr std::array<std::string_view, 2> kInferModalities{"image", "video"};

constexpr std::array<Member<OutputParameters>, 1> kInferOutputParameterMembers{
    {{&OutputParameters::binary_data,
      {.name = "binary_data", .about = "Whether it comes as bytes behind the JSON"}}}};
constexpr ObjectTable<OutputParameters> kInferOutputParameters{"InferOutputParameters",
                                                               kInferOutputParameterMembers};
constexpr std::array<Member<InferOutputBody>, 2> kInferOutputMembers{
    {{&InferOutputBody::name,
      {.name = "name", .about = "A tensor", .choices = kInferOutputNames, .is_required = true}},
     {&InferOutputBody::parameters,
      {.name = "parameters", .about = "Of it", .schema = schema::body<kInferOutputParameters>}}}};
constexpr ObjectTable<InferOutputBody> kInferOutput{"InferRequestOutput", kInferOutputMembers};

constexpr std::array<Member<InputParameters>, 1> kInputParameterMembers{
    {{&InputParameters::binary_data_size,
      {.name = "binary_data_size",
       .about = "Bytes behind the JSON, each element with its length in front",
       .least = 0}}}};
constexpr ObjectTable<InputParameters> kInputParameters{"InferInputParameters",
                                                        kInputParameterMembers};
constexpr std::array<Member<InferInputBody>, 5> kInferInputMembers{
    {{&InferInputBody::name,
      {.name = "name", .about = "The one input", .choices = kInputName, .is_required = true}},
     {&InferInputBody::datatype,
      {.name = "datatype", .about = "Its type", .choices = kInputType, .is_required = true}},
     {&InferInputBody::shape,
      {.name = "shape",
       .about = "Its sizes, whose product is the number of items",
       .schema = schema::list<schema::integer, 1>,
       .is_required = true}},
     {&InferInputBody::data,
      {.name = "data", .about = "URLs or base64", .schema = schema::list<schema::text>}},
     {&InferInputBody::parameters,
      {.name = "parameters",
       .about = "In place of data, bytes",
       .schema = schema::body<kInputParameters>}}}};
constexpr ObjectTable<InferInputBody> kInferInput{"InferInput", kInferInputMembers};

constexpr std::array<Member<InferParameters>, 4> kOwnInferParameters{
    {{&InferParameters::binary_data_output,
      {.name = "binary_data_output",
       .about = "Whether outputs that do not say so themselves come as bytes"}},
     {&InferParameters::dtype,
      {.name = "dtype", .about = "Element type of the rows; auto: that of the checkpoint"}},
     {&InferParameters::modality,
      {.name = "modality",
       .about = "What the items are; without it images",
       .choices = kInferModalities}},
     {&InferParameters::timeout,
      {.name = "timeout", .about = "Most microseconds until the reply; 0: any", .least = 0}}}};
constexpr auto kInferParameterMembers =
    joined<InferParameters>(kOwnInferParameters, kVectorMembers);
constexpr ObjectTable<InferParameters> kInferParameters{"InferParameters", kInferParameterMembers};
constexpr std::array<Member<InferBody>, 4> kInferBodyMembers{
    {{&InferBody::id, {.name = "id", .about = "Name of the request in the reply"}},
     {&InferBody::parameters,
      {.name = "parameters", .about = "Of the request", .schema = schema::body<kInferParameters>}},
     {&InferBody::inputs,
      {.name = "inputs",
       .about = "The one input, media",
       .schema = schema::list<schema::body<kInferInput>, 1>,
       .is_required = true}},
     {&InferBody::outputs,
      {.name = "outputs",
       .about = "What comes back; without it all",
       .schema = schema::list<schema::body<kInferOutput>>}}}};
constexpr ObjectTable<InferBody> kInferBody{"InferBody", kInferBodyMembers};

/// Elements that a shape says there are.
std::size_t read_shape(const InferInputBody& input, std::size_t max_items) {
  const std::string path = input.path("shape");
  const JsonView& shape = *input.shape;
  if (!shape.is_array() || shape.num_elements() == 0) refuse(path, "expected a list of sizes");
  std::int64_t elements = 1;
  for (std::size_t i = 0; i < shape.num_elements(); ++i) {
    const std::optional<std::int64_t> side = shape.element(i).integer();
    if (!side || *side < 0 || *side > kMaxElements) {
      refuse(path, "expected whole numbers up to " + std::to_string(kMaxElements));
    }
    elements *= *side;
    if (elements > kMaxElements) refuse(path, "too many elements");
  }
  check_item_count(static_cast<std::size_t>(elements), max_items);
  return static_cast<std::size_t>(elements);
}

[[noreturn]] void refuse_count(const InferInputBody& input, std::size_t elements,
                               const std::string& in_data) {
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
std::vector<MediaReference> split_elements(const InferInputBody& input, std::size_t elements,
                                           Bytes tensor, const SharedBytes& body,
                                           Modality modality) {
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

std::vector<MediaReference> read_texts(const InferInputBody& input, std::size_t elements,
                                       Modality modality) {
  const std::string path = input.path("data");
  const std::optional<JsonView>& data = input.data;
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
std::optional<std::size_t> binary_size(const InferInputBody& input) {
  if (!input.parameters) return std::nullopt;
  const InputParameters parameters =
      read_object(kInputParameters, *input.parameters, input.path("parameters"));
  if (!parameters.binary_data_size) return std::nullopt;
  return static_cast<std::size_t>(*parameters.binary_data_size);
}

/// The one input. @param tail what is behind the JSON.
std::vector<MediaReference> read_input(const JsonView& json, Bytes tail, const SharedBytes& body,
                                       Modality modality, std::size_t max_items) {
  const InferInputBody input = read_object(kInferInput, json, "inputs[0]");
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

std::vector<InferOutput> read_outputs(const InferBody& body, bool binary) {
  std::vector<InferOutput> outputs;
  if (!body.outputs) return outputs;
  const JsonView& list = *body.outputs;
  if (!list.is_array()) refuse("outputs", "expected a list");
  if (list.num_elements() > kMaxOutputs)
    refuse("outputs", "expected at most " + std::to_string(kMaxOutputs) + " outputs");
  for (std::size_t i = 0; i < list.num_elements(); ++i) {
    const InferOutputBody output =
        read_object(kInferOutput, list.element(i), element_path("outputs", i));
    InferOutput wanted{.name = std::string(*output.name), .binary = binary};
    if (output.parameters) {
      wanted.binary =
          read_object(kInferOutputParameters, *output.parameters, output.path("parameters"))
              .binary_data.value_or(binary);
    }
    outputs.push_back(std::move(wanted));
  }
  return outputs;
}

/// The type of the rows: one that the protocol has a name for.
std::optional<ElementType> type_of(const InferParameters& parameters) {
  if (parameters.dtype.value_or("auto") == "auto") return std::nullopt;
  const std::string path = parameters.path("dtype");
  const ElementType type = element_type(*parameters.dtype, path);
  if (size_of(type) > 1) return type;
  refuse(path, "this protocol has no type of 8 bits", "unsupported_dtype");
}

/// Reads the parameters of the request. @return what the items are.
Modality read_parameters(const InferBody& body, InferRequest& request) {
  static const SharedJson kNone = parse_json_object("{}");
  const InferParameters parameters =
      read_object(kInferParameters, body.parameters.value_or(kNone->root()), "parameters");
  request.binary = parameters.binary_data_output.value_or(false);
  request.type = type_of(parameters);
  request.pooling = pooling_of(parameters.pooling, Pooling::kNone);
  request.deepstack = deepstack_of(parameters.deepstack, request.pooling);
  if (parameters.timeout.value_or(0) > 0) {
    constexpr std::chrono::microseconds kYear = std::chrono::hours(366 * 24);  // a clock goes on
    request.timeout = std::min(kYear, std::chrono::microseconds(*parameters.timeout));
  }
  return parameters.modality.value_or("image") == "image" ? Modality::kImage : Modality::kVideo;
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
  const InferBody parsed = read_object(kInferBody, request.json->root());
  request.id = parsed.id.value_or("");
  const Modality modality = read_parameters(parsed, request);
  if (!parsed.inputs->is_array() || parsed.inputs->num_elements() != 1) {
    refuse("inputs", "expected a list with the one input, media");
  }
  request.media =
      read_input(parsed.inputs->element(0), bytes.subspan(length), body, modality, max_items);
  request.outputs = read_outputs(parsed, request.binary);
  return request;
}

JsonObject infer_schema(SchemaSet& named) { return describe(kInferBody, named); }

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
