// Claims of input memory.
#include "fovea/tower/models/inputs.h"

#include <algorithm>
#include <array>

#include "core/check.h"

namespace fovea {

TensorView NamedTensors::operator[](std::string_view name) const {
  for (const auto& [key, view] : entries_) {
    if (key == name) return view;
  }
  FOVEA_CHECK(false, kInternal, "no input buffer is named \"", name, "\"");
}

InputWriter::Slot& InputWriter::slot(std::string_view name) {
  for (Slot& slot : slots_) {
    if (slot.decl->name == name) return slot;
  }
  FOVEA_CHECK(false, kInternal, "no input buffer is named \"", name, "\"");
}

TensorView InputWriter::claim(std::string_view name, std::int64_t rows) {
  Slot& target = slot(name);
  const Shape& shape = target.decl->shape;
  target.too_small = rows > shape[0];
  FOVEA_CHECK(!target.too_small, kUnavailable, "input \"", name, "\" holds ", shape[0],
              " rows, the batch needs ", rows);
  target.rows_written = rows;
  std::array<std::int64_t, kMaxRank> sizes{};
  std::copy(shape.sizes().begin(), shape.sizes().end(), sizes.begin());
  sizes[0] = rows;
  return {target.memory, target.decl->dtype,
          Shape(std::span(sizes.data(), static_cast<std::size_t>(shape.rank())))};
}

}  // namespace fovea
