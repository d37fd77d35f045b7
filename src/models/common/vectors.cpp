// One vector of a whole image in the place of rows.
#include "models/common/vectors.h"

#include <cmath>
#include <vector>

#include "core/check.h"

namespace fovea::common {

void assemble_vectors(ExecContext& ctx, TensorView rows, std::span<const ItemPart> parts,
                      std::span<const TensorView> out) {
  std::int64_t first = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    FOVEA_CHECK(out[i].shape[0] == 1 && parts[i].count == 1, kInternal, "a vector is one row of ",
                "one unit, its destination has ", out[i].shape[0]);
    ctx.stream.copy(out[i].data, row_range(rows, first, 1).data, out[i].bytes());
    first += parts[i].tokens();
  }
}

RmsNorm unit_norm(WeightLoader& loader, std::int64_t features) {
  constexpr float kEpsilon = 1e-24f;  // of the mean square: far below that of any vector
  const std::vector<float> weight(static_cast<std::size_t>(features),
                                  1 / std::sqrt(static_cast<float>(features)));
  return {.weight = loader.constant(weight, {features}), .epsilon = kEpsilon};
}

}  // namespace fovea::common
