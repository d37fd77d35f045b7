// The items of a call, and its destinations before any of its work.
#include "engine/call.h"

#include <iterator>
#include <utility>
#include <vector>

#include "core/boundary.h"
#include "core/check.h"
#include "core/row_dtype.h"
#include "engine/planned_item.h"
#include "engine/prepare/check_item.h"
#include "rows/row_target.h"

namespace fovea {

Call::Call(ItemView media, const EncodeOptions& options, const Destinations& destinations)
    : how(options), to(destinations), results(media.size()) {
  items.reserve(media.size());
  for (std::size_t i = 0; i < media.size(); ++i) {
    RowTarget target{.result = &results[i], .dtype = how.dtype};
    if (!to.blocks.empty()) target = {&results[i], &to.blocks[i], to.blocks[i].dtype};
    items.push_back({.media = &media[i],
                     .target = target,
                     .share = media.share(i),
                     .is_planned = media.is_planned()});
    if (media.plan(i) != nullptr) items.back().plan = media.plan(i)->sizes;
  }
}

void Call::fail(Item& item, const Error& error) const {
  Embedding failed;
  failed.name = item.media->name;
  failed.modality = item.media->modality;
  failed.times = item.result().times;
  failed.error = error;
  item.result() = std::move(failed);
  if (how.on_error == OnError::kFail) throw Error(error);
}

std::optional<Error> Call::lacks_room(const Item& item, std::int64_t rows) const {
  std::optional<Error> error = item.target.lacks_room(rows, item.media->name);
  const bool is_asked = !error && !item.plan && !is_finished(*item.media) && how.has_room;
  // An item that was refused has no pixels: that there is room by now does not help it.
  if (is_asked && (item.prepared.lacks_room || !how.has_room(*item.media, rows))) {
    error.emplace(ErrorCode::kUnavailable,
                  cat(item.media->name, ": there is no room for its ", rows, " rows"));
  }
  return error;
}

bool Call::has_room(Item& item, std::int64_t rows) const {
  const std::optional<Error> error = lacks_room(item, rows);
  if (!error) return true;
  item.claim.reset();
  fail(item, *error);
  return false;
}

void Call::tell(std::int64_t items_done) {
  if (items_done <= told) return;
  told = items_done;
  if (how.progress) call_back(how.progress, items_done, std::ssize(items));
}

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
    const auto* const known = std::get_if<PrecomputedBlock>(&items[i].source);
    if (known == nullptr) continue;
    used.push_back({&known->block, cat("the rows of item ", i), false});
    check_block(known->block, width, used.back().label);
    check_memory(known->block, device, used.back().label);
  }
  check_apart(used, width);
}

}  // namespace fovea
