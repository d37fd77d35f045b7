#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "fovea/error.h"
#include "fovea/media.h"
#include "fovea/row_block.h"
#include "fovea/tower/device/device.h"

namespace fovea {

/// Where a call of encode() wants its rows; owns nothing.
struct Destinations {
  std::span<const RowBlock> blocks;  ///< one for each item; empty: rows go to the results
  CallerStream stream;

  /// Of an item; null: its result.
  [[nodiscard]] const RowBlock* of(std::size_t item) const {
    return blocks.empty() ? nullptr : &blocks[item];
  }
};

/// What Engine::encode says about destinations, but for whether rows fit there.
/// @param width of the rows. @param device any of the engine.
/// @throws Error(kInvalidArgument).
void check_destinations(const Destinations& to, std::span<const MediaItem> items,
                        std::int64_t width, const Device& device);

/// @param label of the block. @throws Error(kInvalidArgument) if it lies elsewhere than it says.
void check_memory(const RowBlock& block, const Device& device, const std::string& label);

/// The error of an item with more rows than its destination, which may be null, has room for.
[[nodiscard]] std::optional<Error> lacks_room(const RowBlock* to, std::int64_t rows,
                                              const std::string& name);

}  // namespace fovea
