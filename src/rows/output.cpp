// Rows on their way to the caller: element types and the safetensors file.
#include <array>
#include <cstdint>
#include <cstring>
#include <string>

#include "checkpoint/safetensors.h"
#include "core/boundary.h"
#include "core/check.h"
#include "core/json_writer.h"
#include "core/row_dtype.h"
#include "fovea/embedding.h"
#include "fovea/row_formats.h"
#include "fovea/version.h"
#include "rows/row_target.h"

namespace fovea {

namespace {

/// Whether no element has all exponent bits set, as infinities and NaN have.
template <class Bits, Bits kExponent>
bool all_finite(const RowBytes& data) noexcept {
  for (std::size_t at = 0; at < data.size(); at += sizeof(Bits)) {
    Bits bits{};
    std::memcpy(&bits, data.data() + at, sizeof(bits));
    if ((bits & kExponent) == kExponent) return false;
  }
  return true;
}

/// Members in alphabetical order.
JsonObject describe(const Embedding& item, std::size_t index) {
  JsonObject json;
  if (item.error) {
    json.set("error", item.error->what());
  } else {
    json.set("dtype", to_string(to_dtype(item.dtype)));
    if (item.grid_thw) json.set("grid_thw", *item.grid_thw);
  }
  json.set("index", index).set("modality", to_string(item.modality)).set("name", item.name);
  if (item.error) return json;
  json.set("num_embeds", item.rows).set("shape", std::array{item.rows, item.width});
  if (!item.timestamps.empty()) json.set("timestamps", item.timestamps);
  json.set("width", item.width);
  return json;
}

/// What a file of embeddings holds. Refers to them.
struct OutputFile {
  std::vector<checkpoint::OutputTensor> tensors;
  std::map<std::string, std::string> metadata;
};

OutputFile output_of(std::span<const Embedding> items,
                     const std::map<std::string, std::string>& metadata) {
  OutputFile file{.tensors = {}, .metadata = metadata};
  JsonArray list;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Embedding& item = items[i];
    list.add(describe(item, i));
    if (item.error) continue;
    check_data(item);
    file.tensors.push_back(
        {cat("item_", i), {item.data.data(), to_dtype(item.dtype), {item.rows, item.width}}});
    if (item.grid_thw) {
      file.tensors.push_back(
          {cat("item_", i, ".grid_thw"),
           {reinterpret_cast<const std::byte*>(item.grid_thw->data()), DType::kI64, {3}}});
    }
    if (item.retained) {
      file.tensors.push_back({cat("item_", i, ".retained"),
                              {reinterpret_cast<const std::byte*>(item.retained->data()),
                               DType::kI64,
                               {std::ssize(*item.retained)}}});
    }
  }
  file.metadata["format"] = "pt";
  file.metadata["fovea.version"] = version();
  file.metadata["fovea.items"] = to_json_text(list);
  return file;
}

}  // namespace

float Embedding::at(std::int64_t row, std::int64_t column) const try {
  FOVEA_CHECK(row >= 0 && row < rows && column >= 0 && column < width, kInvalidArgument,
              "embedding of ", rows, "x", width, " has no element [", row, ", ", column, "]");
  check_data(*this);
  const DType stored = to_dtype(dtype);
  float value = 0;
  const auto index = static_cast<std::size_t>(row * width + column);
  widen_to_f32(stored, data.data() + index * size_of(stored), &value, 1);
  return value;
} catch (...) {
  rethrow_as_error();
}

bool Embedding::is_finite() const noexcept {
  switch (dtype) {
    case RowDType::kFloat32: return all_finite<std::uint32_t, 0x7f800000>(data);
    case RowDType::kBFloat16: return all_finite<std::uint16_t, 0x7f80>(data);
    case RowDType::kFloat16: return all_finite<std::uint16_t, 0x7c00>(data);
  }
  return true;
}

void save_safetensors(const std::string& path, std::span<const Embedding> items,
                      const std::map<std::string, std::string>& metadata) try {
  const OutputFile file = output_of(items, metadata);
  checkpoint::write_safetensors(path, file.tensors, file.metadata);
} catch (...) {
  rethrow_as_error();
}

void write_safetensors(std::span<const Embedding> items,
                       const std::map<std::string, std::string>& metadata,
                       const ByteSink& sink) try {
  const OutputFile file = output_of(items, metadata);
  checkpoint::write_safetensors(file.tensors, file.metadata,
                                [&](std::span<const std::byte> bytes) { call_back(sink, bytes); });
} catch (...) {
  rethrow_as_error();
}

}  // namespace fovea
