// Checks of views.
#include "fovea/tower/core/tensor_view.h"

#include "core/check.h"

namespace fovea {

namespace {

template <class Matrix>
Matrix rows_of(const Matrix& matrix, std::int64_t first, std::int64_t count) {
  FOVEA_CHECK(
      matrix.shape.rank() == 2 && first >= 0 && count >= 0 && first <= matrix.shape[0] - count,
      kInternal, "rows [", first, ", ", first + count, ") of ", matrix.shape);
  const auto row_bytes = static_cast<std::size_t>(matrix.shape[1]) * size_of(matrix.dtype);
  return {matrix.data + static_cast<std::size_t>(first) * row_bytes,
          matrix.dtype,
          {count, matrix.shape[1]}};
}

}  // namespace

TensorView TensorView::reshaped(const Shape& other) const {
  FOVEA_CHECK(other.elements() == shape.elements(), kInternal, "cannot view ", shape, " as ",
              other);
  return {data, dtype, other};
}

TensorView row_range(const TensorView& matrix, std::int64_t first, std::int64_t count) {
  return rows_of(matrix, first, count);
}

ConstTensorView row_range(const ConstTensorView& matrix, std::int64_t first, std::int64_t count) {
  return rows_of(matrix, first, count);
}

}  // namespace fovea
