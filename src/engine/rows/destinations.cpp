// The destinations of a call, before any of its work.
#include "engine/rows/destinations.h"

#include <vector>

#include "core/check.h"
#include "engine/rows/row_blocks.h"

namespace fovea {

void check_memory(const RowBlock& block, const Device& device, const std::string& label) {
  if (block.rows == 0) return;
  const std::string place =
      block.device == RowBlock::kHost ? "host memory" : cat("memory of cuda:", block.device);
  const bool is_reached = block.device == RowBlock::kHost || !device.properties().host_memory;
  FOVEA_CHECK(is_reached, kInvalidArgument, label, ": an engine on the CPU does not reach ", place);
  FOVEA_CHECK(device.is_memory_of(block.data, block.device), kInvalidArgument, label, ": is not ",
              place, ", as it says");
}

void check_destinations(const Destinations& to, std::span<const MediaItem> items,
                        std::int64_t width, const Device& device) {
  FOVEA_CHECK(to.blocks.size() == items.size(), kInvalidArgument, items.size(),
              " items need as many destinations, got ", to.blocks.size());
  FOVEA_CHECK(to.stream.device == CallerStream::kNone || !device.properties().host_memory,
              kInvalidArgument, "a stream of cuda:", to.stream.device,
              " needs an engine on a GPU, this one is on the CPU");
  std::vector<UsedBlock> used;
  for (std::size_t i = 0; i < to.blocks.size(); ++i) {
    used.push_back({&to.blocks[i], cat("destination ", i)});
    check_block(to.blocks[i], width, used.back().label);
    check_memory(to.blocks[i], device, used.back().label);
  }
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i].source != MediaItem::Source::kRowBlock) continue;
    used.push_back({&items[i].block, cat("the rows of item ", i), false});
    check_block(items[i].block, width, used.back().label);
    check_memory(items[i].block, device, used.back().label);
  }
  check_apart(used, width);
}

std::optional<Error> lacks_room(const RowBlock* to, std::int64_t rows, const std::string& name) {
  if (to == nullptr || rows <= to->rows) return std::nullopt;
  return Error(ErrorCode::kInvalidArgument,
               cat(name, ": ", rows, " rows do not fit into a destination for ", to->rows));
}

}  // namespace fovea
