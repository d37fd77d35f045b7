// Rotary positions in two dimensions.
#include "models/common/rope.h"

#include <cmath>
#include <vector>

#include "fovea/tower/ops/projected_attention.h"

namespace fovea::common {

Tensor inverse_frequencies(WeightLoader& loader, std::int64_t head_dim, double theta) {
  const std::int64_t dim = head_dim / 2;
  std::vector<float> values;  // in f32, as the reference computes them
  for (std::int64_t j = 0; j < dim; ++j) {
    const float exponent = static_cast<float>(2 * (j % (dim / 2))) / static_cast<float>(dim);
    values.push_back(1.0f / std::pow(static_cast<float>(theta), exponent));
  }
  return loader.constant(values, {dim});
}

AttendedRows rotated_rows(ExecContext& ctx, const ops::Sequences& sequences,
                          ConstTensorView positions, const Tensor& inv_freq) {
  const Shape angles{positions.shape[0], inv_freq.shape[inv_freq.shape.rank() - 1]};  // half a head
  const TensorView cos = ctx.arena.tensor(DType::kF32, angles);
  const TensorView sin = ctx.arena.tensor(DType::kF32, angles);
  ops::rope_angles(ctx, {.positions = positions,
                         .inv_freq = inv_freq.view(),
                         .rows = sequences.rows,
                         .cos = cos,
                         .sin = sin});
  return {.sequences = sequences, .cos = cos, .sin = sin};
}

RowOrder halves_order(std::span<const std::int64_t> pairs) {
  RowOrder order;
  for (const std::int64_t half : {0, 1}) {
    for (const std::int64_t pair : pairs) order.push_back(2 * pair + half);
  }
  return order;
}

}  // namespace fovea::common
