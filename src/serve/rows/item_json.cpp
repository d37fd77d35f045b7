#include "serve/rows/item_json.h"

#include <utility>

#include "serve/api_error.h"
#include "serve/text/base64.h"

namespace fovea::serve {
namespace {

/// Null for what has not come from a tower.
const char* name_of(GraphUse use) {
  switch (use) {
    case GraphUse::kNone: return nullptr;
    case GraphUse::kHit: return "hit";
    case GraphUse::kPartial: return "partial";
    case GraphUse::kMiss: return "miss";
  }
  return nullptr;
}

/// Null where no cache was asked.
const char* name_of(CacheUse use) {
  switch (use) {
    case CacheUse::kNotAsked: return nullptr;
    case CacheUse::kHit: return "hit";
    case CacheUse::kJoin: return "join";
    case CacheUse::kMiss: return "miss";
    case CacheUse::kBypass: return "bypass";
  }
  return nullptr;
}

StoredType stored_type(ElementType type) {
  switch (type) {
    case ElementType::kBFloat16: return StoredType::kBFloat16;
    case ElementType::kFloat16: return StoredType::kFloat16;
    case ElementType::kFloat32: return StoredType::kFloat32;
    case ElementType::kFp8E4M3:
    case ElementType::kFp8E5M2: break;
  }
  throw Error(ErrorCode::kInternal, "files of rows hold no fp8");
}

}  // namespace

std::int64_t count_rows(std::span<const std::shared_ptr<const Embedding>> items) {
  std::int64_t rows = 0;
  for (const std::shared_ptr<const Embedding>& item : items) rows += item->rows;
  return rows;
}

StageTimes total(std::span<const std::shared_ptr<const Embedding>> items) noexcept {
  StageTimes sum;
  for (const std::shared_ptr<const Embedding>& item : items) sum += item->times;
  return sum;
}

JsonObject stages_json(const StageTimes& times) {
  JsonObject json;
  for (const Stage& stage : kStages) json.set(stage.name, times.*stage.ms);
  return json;
}

JsonObject item_json(const OutputOptions& options, const EncodeReplyHead& head,
                     const EncodedItem& item, std::size_t index, const RowTensor& tensor) {
  const Embedding& rows = *item.embedding;
  JsonObject json;
  json.set("index", index);
  if (!item.id.empty()) json.set("id", item.id);
  if (!item.uuid.empty()) json.set("uuid", item.uuid);
  json.set("object", "encoding");
  json.set("modality", to_string(rows.modality));
  if (!rows.key.empty()) json.set("key", rows.key);
  if (const char* use = name_of(rows.cache)) json.set("cache", use);
  if (const char* use = name_of(rows.graph)) json.set("graph", use);
  if (rows.units_reused > 0) json.set("units_reused", rows.units_reused);
  json.set("num_embeds", rows.rows);
  json.set("width", rows.width);
  json.set("hidden", head.hidden);
  json.set("deepstack_levels", head.deepstack_levels);
  json.set("dtype", to_string(tensor.type));
  json.set("shape", tensor.shape);
  if (options.grid && rows.grid_thw) json.set("grid_thw", *rows.grid_thw);
  if (rows.retained) json.set("retained", *rows.retained);
  const bool times = options.timestamps || options.format == ReplyFormat::kTorch;
  if (times && !rows.timestamps.empty()) json.set("timestamps", rows.timestamps);
  if (options.timings) json.set("timings_ms", stages_json(rows.times));
  return json;
}

void append_vllm_part(const EncodedItem& item, const RowTensor& tensor, std::string& out) {
  const Embedding& rows = *item.embedding;
  const std::string modality = to_string(rows.modality);
  const std::string type = json_quote(modality + "_embeds");
  out.append("{\"type\":").append(type).append(",").append(type).append(":");
  // Families without a grid have the tensor itself in place of an object.
  if (rows.grid_thw) out.append("{").append(type).append(":");
  out.append("\"").append(torch_base64(stored(tensor))).append("\"");
  if (rows.grid_thw) {
    JsonObject others;
    others.set(modality + "_grid_thw", torch_base64(stored_grid(*rows.grid_thw)));
    if (!rows.timestamps.empty()) others.set("timestamps", rows.timestamps);
    out.append(",").append(to_json_text(others), 1);  // without its first brace
  }
  if (!item.uuid.empty()) out.append(",\"uuid\":").append(json_quote(item.uuid));
  out += '}';
}

std::string torch_base64(const StoredTensor& tensor) {
  try {
    return to_base64(in_memory([&](const ByteSink& sink) { write_torch(tensor, sink); }));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnsupported) throw;
    throw ApiError(400, "response_too_large",
                   std::string(error.what()) + "; ask for output.format safetensors");
  }
}

StoredTensor stored(const RowTensor& tensor, std::string name) {
  return {.name = std::move(name),
          .type = stored_type(tensor.type),
          .shape = tensor.shape,
          .data = tensor.bytes.bytes};
}

}  // namespace fovea::serve
