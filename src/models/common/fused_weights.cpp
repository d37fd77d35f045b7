// Several stored layers as one.
#include "models/common/fused_weights.h"

#include <span>
#include <utility>

#include "core/check.h"

namespace fovea::common {

namespace {

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// Rows of a matrix, or elements of a vector, each of `row_bytes` bytes.
std::vector<std::byte> gathered(std::span<const std::byte> bytes, std::size_t row_bytes,
                                std::span<const std::int64_t> rows) {
  std::vector<std::byte> result;
  result.reserve(rows.size() * row_bytes);
  for (const std::int64_t row : rows) {
    const auto from = bytes.subspan(static_cast<std::size_t>(row) * row_bytes, row_bytes);
    result.insert(result.end(), from.begin(), from.end());
  }
  return result;
}

}  // namespace

Shape FusedWeights::part_shape() const {
  std::vector<std::int64_t> sizes{part_rows};
  sizes.insert(sizes.end(), in_sizes.begin(), in_sizes.end());
  return Shape(sizes);
}

std::int64_t FusedWeights::in_features() const {
  return round_up(Shape(in_sizes).elements(), column_multiple);
}

std::int64_t FusedWeights::out_features() const {
  if (!rows.empty()) return std::ssize(rows);
  return static_cast<std::int64_t>(parts.size()) * round_up(part_rows, row_multiple);
}

StoredBytes read_fused(const checkpoint::WeightSource& source, const FusedWeights& fused,
                       const WeightNames& names, std::string_view suffix, const Shape& shape) {
  const std::int64_t columns = shape.elements() / fused.part_rows;
  const std::int64_t packed_columns =
      shape.rank() == 1 ? 1 : round_up(columns, fused.column_multiple);
  const std::int64_t empty_rows = round_up(fused.part_rows, fused.row_multiple) - fused.part_rows;
  StoredBytes result;
  std::vector<std::byte>& bytes = result.bytes;
  for (std::size_t i = 0; i < fused.parts.size(); ++i) {
    const std::string& part = fused.parts[i];
    if (shape.rank() == 1 && !fused.has_bias(i)) {
      bytes.resize(bytes.size() +
                   static_cast<std::size_t>(fused.part_rows + empty_rows) * size_of(result.dtype));
      continue;
    }
    const std::string name = names.stored(cat(part, suffix));
    const ConstTensorView view = source.tensor(name, shape);
    FOVEA_CHECK(bytes.empty() || view.dtype == result.dtype, kUnsupported, name, " is ",
                to_string(view.dtype), ", its siblings are ", to_string(result.dtype));
    result.dtype = view.dtype;
    const auto size = static_cast<std::int64_t>(size_of(view.dtype));
    const std::int64_t part_bytes = (fused.part_rows + empty_rows) * packed_columns * size;
    bytes.reserve(fused.parts.size() * static_cast<std::size_t>(part_bytes));
    for (std::int64_t row = 0; row < fused.part_rows; ++row) {
      const std::byte* const from = view.data + row * columns * size;
      bytes.insert(bytes.end(), from, from + columns * size);
      bytes.resize(bytes.size() + static_cast<std::size_t>((packed_columns - columns) * size));
    }
    bytes.resize(bytes.size() + static_cast<std::size_t>(empty_rows * packed_columns * size));
  }
  if (!fused.rows.empty()) {
    const std::size_t row_bytes = static_cast<std::size_t>(packed_columns) * size_of(result.dtype);
    bytes = gathered(bytes, row_bytes, fused.rows);
  }
  return result;
}

void append_fused(const checkpoint::WeightSource& source, const FusedWeights& fused,
                  const WeightNames& names, std::string_view suffix, const Shape& shape,
                  StoredBytes& to) {
  StoredBytes more = read_fused(source, fused, names, suffix, shape);
  if (to.bytes.empty()) {
    to = std::move(more);
    return;
  }
  FOVEA_CHECK(more.dtype == to.dtype, kUnsupported, names.stored(cat(fused.parts.front(), suffix)),
              " is ", to_string(more.dtype), ", its siblings are ", to_string(to.dtype));
  to.bytes.insert(to.bytes.end(), more.bytes.begin(), more.bytes.end());
}

}  // namespace fovea::common
