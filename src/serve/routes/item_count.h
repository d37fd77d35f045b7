#pragma once

#include <cstddef>

namespace fovea::serve {

/// For lists of items, before anything is made of their elements.
/// @param most --max-items-per-request. @throws ApiError(400, "too_many_items").
void check_item_count(std::size_t items, std::size_t most);

}  // namespace fovea::serve
