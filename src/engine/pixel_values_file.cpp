// Items from a file of what a Hugging Face processor returned: one matrix with the patches of all
// items one after the other, and one row of the grid per item.
#include <array>
#include <cstring>
#include <optional>

#include "checkpoint/safetensors.h"
#include "core/boundary.h"
#include "core/check.h"
#include "core/row_dtype.h"
#include "fovea/media.h"

namespace fovea {

namespace {

using Grid = std::array<std::int64_t, 3>;

/// Names of the two tensors of a modality.
struct Tensors {
  Modality modality;
  const char* values;
  const char* grids;
};

constexpr std::array<Tensors, 2> kTensors{
    {{Modality::kImage, "pixel_values", "image_grid_thw"},
     {Modality::kVideo, "pixel_values_videos", "video_grid_thw"}}};

/// The type of values; none: bytes.
std::optional<RowDType> row_dtype(const std::string& where, DType dtype) {
  if (dtype == DType::kU8) return std::nullopt;
  for (const RowDType row : {RowDType::kFloat32, RowDType::kBFloat16, RowDType::kFloat16}) {
    if (to_dtype(row) == dtype) return row;
  }
  FOVEA_CHECK(false, kCorruptData, where, ": expected float32, bfloat16, float16 or uint8, got ",
              to_string(dtype));
}

std::vector<Grid> read_grids(const std::string& where, const ConstTensorView& tensor) {
  FOVEA_CHECK(tensor.dtype == DType::kI64 && tensor.shape.rank() == 2 && tensor.shape[0] >= 1 &&
                  tensor.shape[1] == 3,
              kCorruptData, where, ": expected int64 [items >= 1, 3], got ",
              to_string(tensor.dtype), " ", tensor.shape);
  std::vector<Grid> grids(static_cast<std::size_t>(tensor.shape[0]));
  std::memcpy(grids.data(), tensor.data, tensor.bytes());
  return grids;
}

/// Patches of an item, or nothing for a grid that is none.
std::optional<std::int64_t> patches_of(const Grid& grid) {
  if (grid[0] < 1 || grid[1] < 1 || grid[2] < 1) return std::nullopt;
  const auto frame = checked_mul(grid[1], grid[2]);
  return frame ? checked_mul(grid[0], *frame) : std::nullopt;
}

void read_items(const std::string& path, const checkpoint::SafetensorsFile& file,
                const Tensors& names, std::vector<MediaItem>& items) {
  const std::string where = cat(path, ": ", names.values);
  FOVEA_CHECK(file.find(names.grids) != nullptr, kNotFound, where, " comes without ", names.grids);
  const checkpoint::TensorLayout values = file.layout(names.values);
  FOVEA_CHECK(values.shape.rank() == 2, kCorruptData, where, ": expected [patches, values], got ",
              values.shape);
  const std::optional<RowDType> dtype = row_dtype(where, values.dtype);
  const std::int64_t total = values.shape[0];
  const auto row_bytes = static_cast<std::size_t>(values.shape[1]) * size_of(values.dtype);
  std::size_t from = 0;
  std::int64_t used = 0;
  for (const Grid& grid : read_grids(cat(path, ": ", names.grids), file.tensor(names.grids))) {
    const auto patches = patches_of(grid);
    FOVEA_CHECK(patches && *patches <= total - used, kCorruptData, where, ": grid ", grid[0], "x",
                grid[1], "x", grid[2], " does not fit the ", total - used,
                " patches that are left");
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(*patches) * row_bytes);
    file.read(names.values, from, std::as_writable_bytes(std::span(bytes)));
    from += bytes.size();
    MediaItem& item = items.emplace_back(
        dtype ? pixel_values(std::move(bytes), *dtype, *patches, values.shape[1], grid, path)
              : pixel_bytes(std::move(bytes), *patches, values.shape[1], grid, path));
    item.modality = names.modality;
    used += *patches;
  }
  FOVEA_CHECK(used == total, kCorruptData, where, ": ", total, " patches, the grids have ", used);
}

}  // namespace

std::vector<MediaItem> pixel_values_file(const std::string& path) try {
  const checkpoint::SafetensorsFile file(path);
  std::vector<MediaItem> items;
  for (const Tensors& names : kTensors) {
    if (file.find(names.values) != nullptr) read_items(path, file, names, items);
  }
  FOVEA_CHECK(!items.empty(), kNotFound, path,
              ": expected pixel_values with image_grid_thw or pixel_values_videos with "
              "video_grid_thw, found neither");
  for (std::size_t i = 0; items.size() > 1 && i < items.size(); ++i) {
    items[i].name = cat(path, "[", i, "]");
  }
  return items;
} catch (...) {
  rethrow_as_error();
}

}  // namespace fovea
