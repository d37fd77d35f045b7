// The bump allocator under a forward pass.
#include "fovea/tower/device/arena.h"

#include "core/check.h"

#include <algorithm>
#include <limits>

namespace fovea {

Arena Arena::measuring() noexcept {
  // A non-null, aligned address that no op may dereference: views made from it test as present.
  return {reinterpret_cast<std::byte*>(kAlignment), std::numeric_limits<std::size_t>::max()};
}

TensorView Arena::tensor(DType dtype, const Shape& shape) {
  const std::size_t bytes = static_cast<std::size_t>(shape.elements()) * size_of(dtype);
  const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  FOVEA_CHECK(rounded <= capacity_ - used_, kInternal, "arena of ", capacity_, " bytes has ",
              capacity_ - used_, " left, ", rounded, " are needed for ", shape);
  const TensorView view{memory_ + used_, dtype, shape};
  used_ += rounded;
  high_water_ = std::max(high_water_, used_);
  return view;
}

}  // namespace fovea
