// From adjacent rotary pairs to rotary halves.
#include "models/common/row_order.h"

namespace fovea::common {

RowOrder halves_order(std::span<const std::int64_t> pairs) {
  RowOrder order;
  for (const std::int64_t half : {0, 1}) {
    for (const std::int64_t pair : pairs) order.push_back(2 * pair + half);
  }
  return order;
}

}  // namespace fovea::common
