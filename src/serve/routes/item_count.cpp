#include "serve/routes/item_count.h"

#include <string>

#include "serve/api_error.h"

namespace fovea::serve {

void check_item_count(std::size_t items, std::size_t most) {
  if (items <= most) return;
  throw ApiError(400, "too_many_items",
                 "the request has at least " + std::to_string(items) + " items; at most " +
                     std::to_string(most) + " are allowed (--max-items-per-request)",
                 "items");
}

}  // namespace fovea::serve
