// How far the offsets of patches reach.
#include "models/common/pixel_offsets.h"

#include <limits>

#include "core/check.h"

namespace fovea::common {

void check_pixel_offsets(std::int64_t pixel_bytes, std::size_t num_items) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  FOVEA_CHECK(pixel_bytes <= kMost, kInvalidArgument, "sub-batch of ", num_items,
              " items: expected at most ", kMost, " bytes of resized pixels, got ", pixel_bytes,
              "; lower max_num_batched_tokens and the token budgets, or encode smaller images");
}

}  // namespace fovea::common
