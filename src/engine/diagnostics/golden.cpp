// Comparing rows with stored reference rows.
#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "checkpoint/safetensors.h"
#include "core/boundary.h"
#include "core/check.h"
#include "fovea/diagnostics.h"

namespace fovea {

namespace {

/// What families call the rows of an item. Where the reference has rows of given pixel values, too,
/// those are ".out.", and the image's are ".e2e.".
constexpr std::array<const char*, 4> kRowNames{".e2e.pooler_output.0", ".out.pooler_output.0",
                                               ".out.pooler_output", ".out.projected"};

/// Sums of squares over one block of columns: of the difference, and of the reference.
struct Sums {
  double difference = 0;
  double reference = 0;
};

/// The rows of a stored tensor; what is stored per view, [views, rows, columns], is one list of
/// rows.
Shape rows_of(const ConstTensorView& view) {
  const std::int64_t columns = view.shape[view.shape.rank() - 1];
  return {columns == 0 ? 0 : view.shape.elements() / columns, columns};
}

void compare_columns(const Embedding& item, const checkpoint::SafetensorsFile& file,
                     const std::string& name, std::int64_t column, Sums& sums) {
  const ConstTensorView view = file.tensor(name);
  FOVEA_CHECK(view.dtype == DType::kF32 && view.shape.rank() >= 2, kCorruptData, "reference ", name,
              ": expected float32 rows, got ", to_string(view.dtype), " ", view.shape);
  const Shape shape = rows_of(view);
  FOVEA_CHECK(shape[0] == item.rows && column + shape[1] <= item.width, kInvalidArgument, item.name,
              ": has ", item.rows, " rows of ", item.width, ", reference ", name, " has ",
              view.shape, " for columns from ", column);
  std::vector<float> values(static_cast<std::size_t>(shape.elements()));
  widen_to_f32(view.dtype, view.data, values.data(), values.size());
  std::size_t next = 0;
  for (std::int64_t r = 0; r < shape[0]; ++r) {
    for (std::int64_t c = 0; c < shape[1]; ++c) {
      const double expected = values[next++];
      const double difference = static_cast<double>(item.at(r, column + c)) - expected;
      sums.difference += difference * difference;
      sums.reference += expected * expected;
    }
  }
}

}  // namespace

std::optional<double> golden_difference(const Embedding& item, const std::string& golden) try {
  const checkpoint::SafetensorsFile file(
      (std::filesystem::path(golden) / "golden.safetensors").string());
  const std::string stem = item.modality == Modality::kVideo
                               ? std::string("video")
                               : std::filesystem::path(item.name).stem().string();
  const auto* const name = std::ranges::find_if(
      kRowNames, [&](const char* suffix) { return file.find(stem + suffix) != nullptr; });
  if (name == kRowNames.end() || item.error) return std::nullopt;
  const std::string main = stem + *name;
  const checkpoint::TensorEntry* entry = file.find(main);
  Sums sums;
  compare_columns(item, file, main, 0, sums);
  std::int64_t column = entry->shape.back();
  for (int k = 0;; ++k) {
    const std::string level = cat(stem, ".out.deepstack_features.", k);
    const checkpoint::TensorEntry* found = file.find(level);
    if (found == nullptr) break;
    compare_columns(item, file, level, column, sums);
    column += found->shape.back();
  }
  FOVEA_CHECK(column == item.width, kInvalidArgument, item.name, ": rows are ", item.width,
              " wide, the reference has ", column, " columns");
  return std::sqrt(sums.difference / sums.reference);
} catch (...) {
  rethrow_as_error();
}

}  // namespace fovea
