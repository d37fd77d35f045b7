// The destinations of a call, before any of its work.
#include "engine/rows/destinations.h"

#include <vector>

#include "core/check.h"
#include "core/row_dtype.h"
#include "rows/row_target.h"

namespace fovea {

namespace {

struct CallChecks {
  ItemView items;
  std::int64_t width;
  const Device& device;
};

/// Appends the blocks of `to`. @param label what they are called, without their number.
void add_checked(const Destinations& to, const std::string& label, const CallChecks& call,
                 std::vector<UsedBlock>& used) {
  FOVEA_CHECK(to.blocks.size() == call.items.size(), kInvalidArgument, call.items.size(),
              " items need as many destinations, got ", to.blocks.size());
  FOVEA_CHECK(to.stream.device == CallerStream::kNone || !call.device.properties().host_memory,
              kInvalidArgument, "a stream of cuda:", to.stream.device,
              " needs an engine on a GPU, this one is on the CPU");
  for (std::size_t i = 0; i < to.blocks.size(); ++i) {
    used.push_back({&to.blocks[i], cat(label, i)});
    check_block(to.blocks[i], call.width, used.back().label);
    check_memory(to.blocks[i], call.device, used.back().label);
  }
}

}  // namespace

void check_destinations(const Destinations& to, std::span<const Destinations> copies,
                        ItemView items, std::int64_t width, const Device& device) {
  std::vector<UsedBlock> used;
  add_checked(to, "destination ", {items, width, device}, used);
  for (std::size_t number = 0; number < copies.size(); ++number) {
    const std::string label = cat("copy ", number, " of destination ");
    add_checked(copies[number], label, {items, width, device}, used);
    for (std::size_t i = 0; i < items.size(); ++i) {
      const RowBlock& copy = copies[number].blocks[i];
      FOVEA_CHECK(copy.rows >= to.blocks[i].rows && copy.dtype == to.blocks[i].dtype,
                  kInvalidArgument, label, i, ": expected room for ", to.blocks[i].rows,
                  " rows of ", to_string(to_dtype(to.blocks[i].dtype)), ", got ", copy.rows, " of ",
                  to_string(to_dtype(copy.dtype)));
    }
  }
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i].source != MediaItem::Source::kRowBlock) continue;
    used.push_back({&items[i].block, cat("the rows of item ", i), false});
    check_block(items[i].block, width, used.back().label);
    check_memory(items[i].block, device, used.back().label);
  }
  check_apart(used, width);
}

}  // namespace fovea
