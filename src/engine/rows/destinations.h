#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "engine/prepare/item_view.h"
#include "fovea/error.h"
#include "fovea/media.h"
#include "fovea/row_block.h"
#include "fovea/tower/device/device.h"

namespace fovea {

/// Of an item; null: its rows go to its result.
[[nodiscard]] inline const RowBlock* block_of(const Destinations& to, std::size_t item) {
  return to.blocks.empty() ? nullptr : &to.blocks[item];
}

/// What Engine::encode says about destinations and their copies, but for whether rows fit there.
/// @param width of the rows. @param device any of the engine.
/// @throws Error(kInvalidArgument).
void check_destinations(const Destinations& to, std::span<const Destinations> copies,
                        ItemView items, std::int64_t width, const Device& device);

/// @param label of the block. @throws Error(kInvalidArgument) if it lies elsewhere than it says.
void check_memory(const RowBlock& block, const Device& device, const std::string& label);

/// The error of an item with more rows than its destination, which may be null, has room for.
[[nodiscard]] std::optional<Error> lacks_room(const RowBlock* to, std::int64_t rows,
                                              const std::string& name);

}  // namespace fovea
