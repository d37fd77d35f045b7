// Claims of input memory.
#include "models/inputs.h"

#include <algorithm>
#include <array>

namespace fovea {

InputWriter::Slot& InputWriter::slot(std::string_view name) {
  for (Slot& slot : slots_) {
    if (slot.decl->name == name) return slot;
  }
  FOVEA_CHECK(false, kInternal, "no input buffer is named \"", name, "\"");
}

TensorView InputWriter::claim(std::string_view name, std::int64_t rows) {
  Slot& target = slot(name);
  const Shape& shape = target.decl->shape;
  const std::int64_t held = shape[0] / target.decl->parts;
  target.too_small = rows > held;
  FOVEA_CHECK(!target.too_small, kUnavailable, "input \"", name, "\" holds ", held,
              " rows, the batch needs ", rows);
  target.rows_written = rows;
  if (target.decl->parts > 1) return {target.memory, target.decl->dtype, shape};
  std::array<std::int64_t, kMaxRank> sizes{};
  std::copy(shape.sizes().begin(), shape.sizes().end(), sizes.begin());
  sizes[0] = rows;
  return {target.memory, target.decl->dtype,
          Shape(std::span(sizes.data(), static_cast<std::size_t>(shape.rank())))};
}

void InputWriter::keep(std::string_view name) { slot(name).kept = true; }

}  // namespace fovea
