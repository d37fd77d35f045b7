// Rows on their way to the caller: element types and the safetensors file.
#include "engine/output.h"

#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "checkpoint/safetensors.h"
#include "core/check.h"
#include "core/row_dtype.h"
#include "core/stopwatch.h"
#include "fovea/embedding.h"
#include "fovea/version.h"

namespace fovea {

void hand_on_rows(const MediaItem& media, RowDType dtype, Embedding& result) {
  const Stopwatch watch;
  result.rows = media.num_rows;
  result.width = media.row_width;
  result.dtype = dtype;
  result.grid_thw = media.grid_thw;
  result.retained = media.retained;
  const auto count = static_cast<std::size_t>(media.num_rows * media.row_width);
  result.data.resize(count * size_of(to_dtype(dtype)));
  convert_rows(to_dtype(media.row_dtype), reinterpret_cast<const std::byte*>(media.bytes.data()),
               dtype, result.data.data(), count);
  result.times.output_ms = watch.elapsed_ms();
}

float Embedding::at(std::int64_t row, std::int64_t column) const {
  FOVEA_CHECK(row >= 0 && row < rows && column >= 0 && column < width, kInvalidArgument,
              "embedding of ", rows, "x", width, " has no element [", row, ", ", column, "]");
  const DType stored = to_dtype(dtype);
  float value = 0;
  const auto index = static_cast<std::size_t>(row * width + column);
  widen_to_f32(stored, data.data() + index * size_of(stored), &value, 1);
  return value;
}

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

}  // namespace

bool Embedding::is_finite() const noexcept {
  switch (dtype) {
    case RowDType::kFloat32: return all_finite<std::uint32_t, 0x7f800000>(data);
    case RowDType::kBFloat16: return all_finite<std::uint16_t, 0x7f80>(data);
    case RowDType::kFloat16: return all_finite<std::uint16_t, 0x7c00>(data);
  }
  return true;
}

namespace {

nlohmann::json describe(const Embedding& item, std::size_t index) {
  nlohmann::json entry = {{"index", index},
                          {"name", item.name},
                          {"modality", item.modality == Modality::kImage ? "image" : "video"}};
  if (item.error) {
    entry["error"] = item.error->what();
    return entry;
  }
  entry["num_embeds"] = item.rows;
  entry["width"] = item.width;
  entry["dtype"] = to_string(to_dtype(item.dtype));
  entry["shape"] = {item.rows, item.width};
  if (item.grid_thw) entry["grid_thw"] = *item.grid_thw;
  if (!item.timestamps.empty()) entry["timestamps"] = item.timestamps;
  return entry;
}

}  // namespace

void save_safetensors(const std::string& path, std::span<const Embedding> items,
                      const std::map<std::string, std::string>& metadata) {
  std::vector<checkpoint::OutputTensor> tensors;
  nlohmann::json list = nlohmann::json::array();
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Embedding& item = items[i];
    list.push_back(describe(item, i));
    if (item.error) continue;
    tensors.push_back(
        {cat("item_", i), {item.data.data(), to_dtype(item.dtype), {item.rows, item.width}}});
    if (item.grid_thw) {
      tensors.push_back(
          {cat("item_", i, ".grid_thw"),
           {reinterpret_cast<const std::byte*>(item.grid_thw->data()), DType::kI64, {3}}});
    }
    if (item.retained) {
      tensors.push_back({cat("item_", i, ".retained"),
                         {reinterpret_cast<const std::byte*>(item.retained->data()),
                          DType::kI64,
                          {std::ssize(*item.retained)}}});
    }
  }
  std::map<std::string, std::string> all = metadata;
  all["format"] = "pt";
  all["fovea.version"] = version();
  all["fovea.items"] = list.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  checkpoint::write_safetensors(path, tensors, all);
}

}  // namespace fovea
