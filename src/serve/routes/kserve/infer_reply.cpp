#include "serve/routes/kserve/infer_reply.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <span>
#include <utility>

#include "core/json_writer.h"
#include "serve/api_error.h"

namespace fovea::serve {
namespace {

using Items = std::vector<std::shared_ptr<const Embedding>>;

/// A tensor of a reply.
struct Tensor {
  std::string name;
  std::string datatype;
  std::vector<std::int64_t> shape;
  std::vector<BodyPart> bytes;
  std::string numbers;  ///< the same as JSON, if that is asked for
};

Tensor integers(std::string name, std::vector<std::int64_t> shape,
                const std::vector<std::int64_t>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(std::int64_t));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  Tensor tensor{std::move(name), "INT64", std::move(shape), {}, to_json_text(values)};
  tensor.bytes.push_back(body_part(std::move(bytes)));
  return tensor;
}

bool have_grids(const Items& items) {
  return std::ranges::all_of(items, [](const auto& item) { return item->grid_thw.has_value(); });
}

Tensor grids_of(const Items& items) {
  if (!have_grids(items)) {
    refuse("outputs", "this model has no grids");
  }
  std::vector<std::int64_t> values;
  for (const auto& item : items) {
    values.insert(values.end(), item->grid_thw->begin(), item->grid_thw->end());
  }
  return integers("grid_thw", {static_cast<std::int64_t>(items.size()), 3}, values);
}

void check_json(const RowOptions& rows, const ReplyHead& head, std::int64_t values) {
  if (rows.type != ElementType::kFloat32) {
    throw ApiError(400, "unsupported_dtype",
                   std::string("embeddings: JSON has no ") + kserve_datatype(rows.type) +
                       "; ask for binary_data, or for the parameter dtype float32",
                   "outputs");
  }
  if (values > head.max_json_values) {
    throw ApiError(400, "response_too_large_for_json",
                   "embeddings: " + std::to_string(values) + " numbers; at most " +
                       std::to_string(head.max_json_values) +
                       " are sent as JSON (--max-json-values); ask for binary_data",
                   "outputs");
  }
}

/// All rows one below the other. A pooled item is one of them.
/// @param as_json how many tensors of the reply have them as JSON; 0: this one has not.
Tensor embeddings_of(std::vector<RowTensor> tensors, const RowOptions& rows, const ReplyHead& head,
                     std::int64_t as_json) {
  Tensor all{"embeddings", kserve_datatype(rows.type), {0, tensors[0].shape.back()}, {}, {}};
  for (const RowTensor& tensor : tensors) {
    all.shape[0] += tensor.shape.size() > 1 ? tensor.shape[0] : 1;
  }
  if (as_json > 0) check_json(rows, head, as_json * all.shape[0] * all.shape[1]);
  for (RowTensor& tensor : tensors) {
    if (as_json > 0 && !tensor.bytes.bytes.empty()) {
      all.numbers += all.numbers.empty() ? "[" : ",";
      RowTensor flat = tensor;
      flat.shape = {static_cast<std::int64_t>(tensor.bytes.bytes.size() / size_of(rows.type))};
      std::string numbers;
      append_json_numbers(flat, numbers);
      all.numbers.append(numbers, 1, numbers.size() - 2);  // without its brackets
    }
    all.bytes.push_back(std::move(tensor.bytes));
  }
  if (as_json > 0) all.numbers += all.numbers.empty() ? "[]" : "]";
  return all;
}

std::size_t size_of_parts(const std::vector<BodyPart>& parts) {
  std::size_t bytes = 0;
  for (const BodyPart& part : parts) bytes += part.bytes.size();
  return bytes;
}

/// The tensor as a member of `outputs`.
std::string output_text(const Tensor& tensor, bool binary) {
  std::string text = "{\"name\":\"" + tensor.name + "\",\"datatype\":\"" + tensor.datatype +
                     "\",\"shape\":" + to_json_text(tensor.shape);
  if (binary) {
    return text +
           ",\"parameters\":{\"binary_data_size\":" + std::to_string(size_of_parts(tensor.bytes)) +
           "}}";
  }
  return text + ",\"data\":" + tensor.numbers + "}";
}

/// JSON, and tensors behind it if there are any.
Reply reply_of(const std::string& json, const std::vector<BodyPart>& tensors,
               const std::shared_ptr<const void>& room) {
  if (tensors.empty()) return json_reply(json, room);
  BodyBuilder body;
  body.add(json);
  for (const BodyPart& part : tensors) {
    body.keep(part);
    body.add(part.bytes);
  }
  Reply reply = binary_reply(body, room);
  reply.headers.push_back({"Inference-Header-Content-Length", std::to_string(json.size())});
  return reply;
}

std::vector<InferOutput> wanted_outputs(const InferRequest& request, const Items& items) {
  if (!request.outputs.empty()) return request.outputs;
  std::vector<InferOutput> outputs{{"embeddings", request.binary}, {"num_embeds", request.binary}};
  if (have_grids(items)) outputs.push_back({"grid_thw", request.binary});
  return outputs;
}

}  // namespace

RowOptions infer_rows(const InferRequest& request, ElementType checkpoint) {
  RowOptions rows;
  rows.pooling = request.pooling;
  rows.deepstack = request.deepstack;
  rows.type = request.type.value_or(checkpoint);
  return rows;
}

std::int64_t rows_as_json(const InferRequest& request) {
  if (request.outputs.empty()) return request.binary ? 0 : 1;
  return std::ranges::count_if(request.outputs, [](const InferOutput& output) {
    return output.name == "embeddings" && !output.binary;
  });
}

const char* kserve_datatype(ElementType type) {
  if (type == ElementType::kFloat32) return "FP32";
  return type == ElementType::kFloat16 ? "FP16" : "BF16";
}

Reply infer_reply(const InferRequest& request, const RowOptions& rows, const ReplyHead& head,
                  const Items& items) {
  std::vector<RowTensor> tensors = first_tensors(items, head.hidden, rows);
  std::vector<std::int64_t> counts;
  counts.reserve(tensors.size());
  for (const RowTensor& tensor : tensors) {
    counts.push_back(tensor.shape.size() > 1 ? tensor.shape[0] : 1);
  }
  std::string text = "{\"model_name\":" + json_quote(head.model) + ",\"model_version\":\"1\"";
  if (!request.id.empty()) text += ",\"id\":" + json_quote(request.id);
  text += ",\"outputs\":[";
  std::vector<BodyPart> tail;
  const std::int64_t as_json = rows_as_json(request);
  for (const InferOutput& output : wanted_outputs(request, items)) {
    Tensor tensor = output.name == "embeddings"
                        ? embeddings_of(tensors, rows, head, output.binary ? 0 : as_json)
                    : output.name == "num_embeds"
                        ? integers("num_embeds", {static_cast<std::int64_t>(items.size())}, counts)
                        : grids_of(items);
    text += (text.ends_with('[') ? "" : ",") + output_text(tensor, output.binary);
    if (output.binary) std::ranges::move(tensor.bytes, std::back_inserter(tail));
  }
  return reply_of(text + "]}", tail, head.room);
}

}  // namespace fovea::serve
