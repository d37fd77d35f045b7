#pragma once

#include <cstdint>
#include <span>

#include "engine/prepare/item_view.h"
#include "fovea/row_block.h"
#include "fovea/tower/device/device.h"

namespace fovea {

/// What Engine::encode says about destinations and their copies, but for whether rows fit there.
/// @param width of the rows. @param device any of the engine.
/// @throws Error(kInvalidArgument).
void check_destinations(const Destinations& to, std::span<const Destinations> copies,
                        ItemView items, std::int64_t width, const Device& device);

}  // namespace fovea
