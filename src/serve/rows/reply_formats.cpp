#include "serve/rows/reply_formats.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "fovea/row_formats.h"
#include "serve/api_error.h"
#include "serve/rows/item_json.h"
#include "serve/rows/vector_reply.h"
#include "serve/text/base64.h"

namespace fovea::serve {
namespace {

bool is_json(ReplyFormat format) {
  return format == ReplyFormat::kJson || format == ReplyFormat::kBase64 ||
         format == ReplyFormat::kTorch;
}

[[noreturn]] void refuse_format(const char* code, const char* param, const OutputOptions& options,
                                const std::string& problem) {
  throw ApiError(
      400, code,
      std::string(param) + ": format " + std::string(to_string(options.format)) + " " + problem,
      param);
}

void check_dtype(const OutputOptions& options) {
  const ElementType type = options.rows.type;
  const std::string name(to_string(type));
  const bool is_fp8 = size_of(type) == 1;
  switch (options.format) {
    case ReplyFormat::kBase64:
    case ReplyFormat::kRaw: return;
    case ReplyFormat::kJson:
      if (type == ElementType::kFloat32) return;
      refuse_format("unsupported_dtype", "output.dtype", options,
                    "holds float32, not " + name + "; ask for output.format base64 or safetensors");
    case ReplyFormat::kNpy:
      if (type == ElementType::kFloat32 || type == ElementType::kFloat16) return;
      refuse_format("unsupported_dtype", "output.dtype", options,
                    "holds float32 and float16, not " + name);
    case ReplyFormat::kTorch:
    case ReplyFormat::kSafetensors:
      if (!is_fp8) return;
      refuse_format("unsupported_dtype", "output.dtype", options,
                    "holds float32, float16 and bfloat16, not " + name +
                        "; ask for output.format base64 or raw");
  }
}

void check_part(const OutputOptions& options) {
  if (!options.part) return;
  if (!is_json(options.format))
    refuse_format("invalid_value", "output.include", options,
                  "holds no content parts; ask for torch");
  if (copies_rows(options.rows) || options.rows.pooling != Pooling::kNone) {
    refuse("output.include",
           "a content part holds rows as they are: without pooling, "
           "normalize, fp8, another byte order, and with deepstack concat");
  }
}

/// Numbers, base64 or an archive.
void append_data(const OutputOptions& options, const RowTensor& tensor, std::string& out) {
  if (options.format == ReplyFormat::kJson) return append_json_numbers(tensor, out);
  out += '"';
  out += options.format == ReplyFormat::kTorch ? torch_base64(stored(tensor))
                                               : to_base64(tensor.bytes.bytes);
  out += '"';
}

/// The members of an item that are too large to be copied.
void append_item_data(const OutputOptions& options, const EncodedItem& item,
                      const std::vector<RowTensor>& tensors, std::string& out) {
  out += ",\"data\":";
  append_data(options, tensors.front(), out);
  if (options.rows.deepstack == Deepstack::kSplit) {
    out += ",\"deepstack\":[";
    for (std::size_t level = 1; level < tensors.size(); ++level) {
      if (level > 1) out += ',';
      append_data(options, tensors[level], out);
    }
    out += ']';
  }
  if (options.format == ReplyFormat::kTorch && item.embedding->grid_thw) {
    out += ",\"grid_thw_torch\":\"" + torch_base64(stored_grid(*item.embedding->grid_thw)) + '"';
  }
  if (options.part) {
    out += ",\"part\":";
    append_vllm_part(item, tensors.front(), out);
  }
}

std::int64_t rows_of(const std::vector<EncodedItem>& items) {
  std::int64_t rows = 0;
  for (const EncodedItem& item : items) rows += item.embedding->rows;
  return rows;
}

Reply list_reply(const OutputOptions& options, const EncodeReplyHead& head,
                 const std::vector<EncodedItem>& items, const ItemTensors& tensors) {
  std::string text = list_start(head, "encoding.list");
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) text += ',';
    text += to_json_text(item_json(options, head, items[i], i, tensors[i].front()));
    text.pop_back();  // the brace
    append_item_data(options, items[i], tensors[i], text);
    text += '}';
  }
  JsonObject usage = usage_of(rows_of(items));
  const auto videos = std::ranges::count_if(
      items, [](const EncodedItem& item) { return item.embedding->modality == Modality::kVideo; });
  usage.set("images", static_cast<std::int64_t>(items.size()) - videos);
  usage.set("videos", videos);
  text += "],\"usage\":" + to_json_text(usage) + '}';
  return json_reply(std::move(text), head.room);
}

Reply npy_reply(const EncodeReplyHead& head, const ItemTensors& tensors) {
  const RowTensor& tensor = tensors.front().front();
  BodyBuilder body;
  body.keep(tensor.bytes);
  write_npy(stored(tensor), body.sink());
  return binary_reply(body, head.room);
}

Reply raw_reply(const OutputOptions& options, const EncodeReplyHead& head,
                const std::vector<EncodedItem>& items, const ItemTensors& tensors) {
  std::vector<RowTensor> all;
  for (const std::vector<RowTensor>& of_item : tensors) all.push_back(of_item.front());
  const VectorForm form{.encoding = VectorEncoding::kBytes,
                        .type = options.rows.type,
                        .order = options.rows.order,
                        .dtype_name = std::string(to_string(options.rows.type)),
                        .endianness = options.rows.order == ByteOrder::kBig ? "big" : "little"};
  const ReplyHead& of_all = head;
  return bytes_reply(form, {of_all, "encoding", rows_of(items)}, all, kInsteadOfText);
}

Reply formatted(const OutputOptions& options, const EncodeReplyHead& head,
                const std::vector<EncodedItem>& items, const ItemTensors& tensors) {
  switch (options.format) {
    case ReplyFormat::kJson:
      check_json_values(std::transform_reduce(tensors.begin(), tensors.end(), std::size_t{0},
                                              std::plus(), count_numbers),
                        head.max_json_values, kInsteadOfText);
      return list_reply(options, head, items, tensors);
    case ReplyFormat::kBase64:
    case ReplyFormat::kTorch: break;
    case ReplyFormat::kNpy: return npy_reply(head, tensors);
    case ReplyFormat::kSafetensors: return safetensors_reply(options, head, items, tensors);
    case ReplyFormat::kRaw: return raw_reply(options, head, items, tensors);
  }
  return list_reply(options, head, items, tensors);
}

}  // namespace

std::string_view to_string(ReplyFormat format) {
  switch (format) {
    case ReplyFormat::kJson: return "json";
    case ReplyFormat::kBase64: return "base64";
    case ReplyFormat::kTorch: return "torch";
    case ReplyFormat::kNpy: return "npy";
    case ReplyFormat::kSafetensors: return "safetensors";
    case ReplyFormat::kRaw: return "raw";
  }
  return "json";
}

void check_output(const OutputOptions& options, std::size_t items) {
  check_dtype(options);
  const ReplyFormat format = options.format;
  if (options.rows.order == ByteOrder::kBig && format != ReplyFormat::kBase64 &&
      format != ReplyFormat::kRaw) {
    refuse_format("invalid_value", "output.endianness", options,
                  "is little-endian; ask for output.format base64 or raw");
  }
  const bool one_tensor = format == ReplyFormat::kNpy || format == ReplyFormat::kRaw;
  if (one_tensor && options.rows.deepstack == Deepstack::kSplit) {
    refuse_format("invalid_value", "output.deepstack", options,
                  "holds one tensor of an item; ask for output.format safetensors");
  }
  if (format == ReplyFormat::kNpy && items != 1) {
    refuse_format(
        "invalid_value", "output.format", options,
        "holds one item, not " + std::to_string(items) + "; ask for output.format safetensors");
  }
  check_part(options);
}

double reply_factor(const OutputOptions& options) {
  constexpr double kBase64 = 2 * 4.0 / 3;                // alone, then in the body
  constexpr double kArchive = 1 + kBase64;               // the archive, then its text
  if (options.rows.pooling != Pooling::kNone) return 0;  // a vector beside all its rows
  double factor = copies_rows(options.rows) ? 1 : 0;
  if (options.format == ReplyFormat::kJson) factor += kJsonNumberBytes / 4;
  if (options.format == ReplyFormat::kBase64) factor += kBase64;
  if (options.format == ReplyFormat::kTorch) factor += kArchive;
  if (options.format == ReplyFormat::kSafetensors && options.naming == TensorNaming::kHf)
    factor += 1;
  return options.part ? factor + kArchive : factor;
}

Reply encode_reply(const OutputOptions& options, const EncodeReplyHead& head,
                   const std::vector<EncodedItem>& items) {
  check_output(options, items.size());
  ItemTensors tensors;
  for (const EncodedItem& item : items)
    tensors.push_back(make_tensors(item.embedding, head.hidden, options.rows));
  Reply reply = formatted(options, head, items, tensors);
  reply.headers.push_back({"X-Fovea-Format", std::string(to_string(options.format))});
  return reply;
}

}  // namespace fovea::serve
