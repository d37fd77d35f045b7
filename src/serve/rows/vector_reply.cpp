#include "serve/rows/vector_reply.h"

#include <algorithm>
#include <utility>

#include "core/json_writer.h"
#include "serve/api_error.h"
#include "serve/text/base64.h"

namespace fovea::serve {
namespace {

/// Most bytes of the header `metadata`: common clients take lines of 8 KiB.
constexpr std::size_t kMaxMetadataBytes = 7168;

/// {"index": .., "object": .., "embedding" or "data": ..}
void append_entry(const VectorForm& form, const VectorReplyHead& head, std::size_t index,
                  const RowTensor& vector, std::string& out) {
  out += "{\"index\":" + std::to_string(index) + ",\"object\":\"" + head.object + "\",\"" +
         (head.object == "embedding" ? "embedding" : "data") + "\":";
  if (form.encoding == VectorEncoding::kFloat) {
    append_json_numbers(vector, out);
  } else {
    out += '"' + to_base64(vector.bytes.bytes) + '"';
  }
  out += '}';
}

/// The value of the header `metadata` for tensors that are sent back to back: JSON in ASCII.
/// @throws ApiError(400, "metadata_header_too_large").
std::string metadata_header(const VectorForm& form, const VectorReplyHead& head,
                            const std::vector<RowTensor>& vectors, std::string_view instead) {
  JsonArray entries;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    const std::size_t end = begin + vectors[i].bytes.bytes.size();
    JsonObject entry;
    entry.set("index", i);
    entry.set("embed_dtype", form.dtype_name);
    entry.set("endianness", form.endianness);
    entry.set("start", std::exchange(begin, end));
    entry.set("end", end);
    entry.set("shape", vectors[i].shape);
    entries.add(entry);
  }
  JsonObject metadata;
  metadata.set("id", head.id);
  metadata.set("created", head.created);
  metadata.set("model", head.model);
  metadata.set("data", entries);
  metadata.set("usage", usage_of(head.prompt_tokens));
  std::string text = json_in_ascii(to_json_text(metadata));
  if (text.size() <= kMaxMetadataBytes) return text;
  throw ApiError(400, "metadata_header_too_large",
                 std::to_string(vectors.size()) + " vectors need a header of " +
                     std::to_string(text.size()) + " bytes, at most " +
                     std::to_string(kMaxMetadataBytes) + " are sent; ask for " +
                     std::string(instead));
}

}  // namespace

VectorForm vector_form(const VectorFormMembers& members) {
  VectorForm form;
  const auto* const encoding =
      std::ranges::find(kVectorEncodings, members.encoding_format.value_or("float"));
  form.encoding = static_cast<VectorEncoding>(encoding - kVectorEncodings.begin());
  form.type = element_type(members.embed_dtype.value_or(form.dtype_name), "embed_dtype");
  form.dtype_name = to_string(form.type);
  form.endianness = members.endianness.value_or(form.endianness);
  form.order = form.endianness == "big" ? ByteOrder::kBig : ByteOrder::kLittle;
  if (form.encoding == VectorEncoding::kFloat) {
    form.type = ElementType::kFloat32;
    form.order = ByteOrder::kLittle;
  }
  return form;
}

Reply vector_reply(const VectorForm& form, const VectorReplyHead& head,
                   const std::vector<RowTensor>& vectors) {
  if (form.encoding == VectorEncoding::kBytes || form.encoding == VectorEncoding::kBytesOnly)
    return bytes_reply(form, head, vectors, "encoding_format bytes_only");
  if (form.encoding == VectorEncoding::kFloat)
    check_json_values(count_numbers(vectors), head.max_json_values,
                      "encoding_format base64 or bytes");
  std::string text = list_start(head, "list");
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    if (i > 0) text += ',';
    append_entry(form, head, i, vectors[i], text);
  }
  text += "],\"usage\":" + to_json_text(usage_of(head.prompt_tokens)) + '}';
  return json_reply(std::move(text), head.room);
}

Reply bytes_reply(const VectorForm& form, const VectorReplyHead& head,
                  const std::vector<RowTensor>& vectors, std::string_view instead) {
  const bool is_described = form.encoding == VectorEncoding::kBytes;
  const std::string metadata = is_described ? metadata_header(form, head, vectors, instead) : "";
  BodyBuilder body;
  for (const RowTensor& vector : vectors) {
    body.keep(vector.bytes);
    body.add(vector.bytes.bytes);
  }
  Reply reply = binary_reply(body, head.room);
  if (is_described) reply.headers.push_back({"metadata", metadata});
  return reply;
}

std::size_t count_numbers(const std::vector<RowTensor>& tensors) {
  std::size_t numbers = 0;
  for (const RowTensor& tensor : tensors)
    numbers += tensor.bytes.bytes.size() / size_of(tensor.type);
  return numbers;
}

void check_json_values(std::size_t values, std::int64_t max_values, std::string_view instead) {
  if (std::cmp_less_equal(values, max_values)) return;
  throw ApiError(400, "response_too_large_for_json",
                 "the reply would hold " + std::to_string(values) + " numbers, JSON at most " +
                     std::to_string(max_values) + " (--max-json-values); ask for " +
                     std::string(instead));
}

}  // namespace fovea::serve
