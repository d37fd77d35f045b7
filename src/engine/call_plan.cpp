// The order of a call: which items run together on which replica, and how many are prepared at
// once.
#include "engine/call_plan.h"

#include <algorithm>
#include <utility>

#include "core/interrupt.h"
#include "engine/replicas/load_balance.h"

namespace fovea {

namespace {

constexpr std::size_t kFirstOnGpu = 16;
constexpr std::size_t kBatchesInWindow = 8;      // bounds memory where items are large
constexpr std::size_t kSearchedTogether = 4096;  // items

/// Most items of a replica in a window of several sub-batches.
std::size_t window_items(bool on_host) noexcept { return on_host ? 64 : 32; }

/// Most items of a replica in a call that runs as it comes: on a GPU as many as have no second half
/// that could be prepared while the first one runs.
std::size_t short_call(bool on_host) noexcept { return on_host ? 64 : 2 * kFirstOnGpu - 1; }

/// Appends the sub-batches of `selection`, indices into `sizes`.
void append_packed(const CallLimits& limits, CallSizes sizes,
                   std::span<const std::size_t> selection, bool replayed,
                   std::vector<CallBatch>& batches) {
  std::vector<ItemSpec> specs;
  specs.reserve(selection.size());
  for (const std::size_t item : selection) specs.push_back(sizes[item]->spec);
  const Packing packing =
      plan_packing(limits.config, specs, limits.packing, replayed, !limits.on_host);
  for (const SubBatch& batch : packing.batches) {
    CallBatch& added = batches.emplace_back();
    added.sizes = batch;
    added.replayed = replayed;
    for (PackedItem packed : packing.items(batch)) {
      packed.item = static_cast<std::int64_t>(selection[static_cast<std::size_t>(packed.item)]);
      added.items.push_back(packed);
    }
  }
}

/// How many of these items fit into a window of one replica; the first does in any case.
std::size_t fitting_window(const CallLimits& limits, CallSizes sizes,
                           std::span<const std::size_t> items) {
  std::size_t bytes = 0;
  std::size_t count = 0;
  for (; count < std::min(items.size(), window_items(limits.on_host)); ++count) {
    bytes += sizes[items[count]]->pixel_bytes;
    if (count > 0 && bytes > limits.window_bytes / limits.num_replicas) break;
  }
  return count;
}

/// Whether an item could fill up a sub-batch of whole items. @param replayed as append_packed.
bool fills_up(const CallLimits& limits, CallSizes sizes, const CallBatch& batch, std::size_t item) {
  const auto is_whole = [&](const PackedItem& packed) {
    const ItemSpec& spec = sizes[static_cast<std::size_t>(packed.item)]->spec;
    return !packed.path || spec.units_on(*packed.path).rows * packed.units == total_tokens(spec);
  };
  const auto& spec = sizes[item]->spec;
  ItemSpec unit{.num_seqs = 1};
  for (std::size_t path = 0; path < limits.spec.paths.size(); ++path) {
    unit.path_tokens[path] = spec.units_on(static_cast<PathId>(path)).rows;
  }
  return std::ranges::all_of(batch.items, is_whole) &&
         batch.sizes.has_room_for(unit, limits_of(limits.config, batch.replayed));
}

/// Appends the sub-batches of a window of items of several units, the first of `left`.
/// @return how many items they are: those that are in the last sub-batch alone are left to the next
/// window, whose items could fill it up.
std::size_t append_window(const CallLimits& limits, CallSizes sizes,
                          std::span<const std::size_t> left, bool replayed,
                          std::vector<CallBatch>& batches) {
  std::size_t count = fitting_window(limits, sizes, left);
  const std::size_t first = batches.size();
  append_packed(limits, sizes, left.first(count), replayed, batches);
  const bool are_several = batches.size() > first + 1 && count < left.size();
  if (are_several && fills_up(limits, sizes, batches.back(), left[count])) {
    count -= batches.back().items.size();
    batches.resize(first);
    append_packed(limits, sizes, left.first(count), replayed, batches);
  }
  for (CallBatch& batch : std::span(batches).subspan(first)) {
    batch.window = CallBatch::Window::kContinues;
  }
  batches[first].window = CallBatch::Window::kBegins;
  return count;
}

/// Appends the sub-batches of items that all are replayed, or all run eagerly. @param items are put
/// into another order.
void append_kind(const CallLimits& limits, CallSizes sizes, std::span<std::size_t> items,
                 bool replayed, std::vector<CallBatch>& batches) {
  std::size_t num_cut = 0;
  if (limits.packing == PackingPolicy::kUnits) {
    const auto is_cut = [&](std::size_t item) {
      return std::ranges::any_of(units_of(sizes[item]->spec),
                                 [](const ItemUnits& units) { return units.count > 1; });
    };
    const auto whole = std::stable_partition(items.begin(), items.end(), is_cut);
    num_cut = static_cast<std::size_t>(whole - items.begin());
    // Windows of them are parts of the order of packing.
    std::ranges::stable_sort(items.first(num_cut), {},
                             [&](std::size_t item) { return total_tokens(sizes[item]->spec); });
  }
  const bool is_search = limits.packing == PackingPolicy::kCost;
  for (std::size_t begin = 0, count = 0; begin < items.size(); begin += count) {
    check_interrupt();
    if (begin < num_cut) {
      const auto left = items.subspan(begin, num_cut - begin);
      count = append_window(limits, sizes, left, replayed, batches);
      continue;
    }
    count = items.size() - begin;
    if (is_search) count = std::min(count, kSearchedTogether);
    append_packed(limits, sizes, items.subspan(begin, count), replayed, batches);
  }
}

/// The sub-batches of one replica. @param share of it; is put into another order.
std::vector<CallBatch> pack_share(const CallLimits& limits, CallSizes sizes,
                                  std::vector<std::size_t>& share) {
  const auto eager = std::stable_partition(share.begin(), share.end(), [&](std::size_t item) {
    return limits.graphs && serves(limits.spec, limits.config, sizes[item]->modality);
  });
  std::vector<CallBatch> batches;
  append_kind(limits, sizes, {share.begin(), eager}, true, batches);
  append_kind(limits, sizes, {eager, share.end()}, false, batches);
  return batches;
}

/// Bytes of the prepared pixels of items, as far as they are known.
std::size_t bytes_of(CallSizes sizes) noexcept {
  std::size_t bytes = 0;
  for (const std::optional<ItemPlan>& size : sizes) bytes += size ? size->pixel_bytes : 0;
  return bytes;
}

/// Adds the items of a sub-batch to a window that they are not in.
void add_items(const CallBatch& batch, std::size_t replica, CallWindow& window) {
  const std::size_t before = window.items.size();
  for (const PackedItem& packed : batch.items) {
    const auto item = static_cast<std::size_t>(packed.item);
    const bool is_cut = packed.path.has_value();
    if (is_cut && std::ranges::find(window.items, item) != window.items.end()) continue;
    window.items.push_back(item);
  }
  window.replicas.resize(window.replicas.size() + window.items.size() - before, replica);
}

/// Moves the next sub-batches of a replica to a window. @param left of them.
void take_batches(const CallLimits& limits, CallSizes sizes, std::span<const CallBatch>& left,
                  std::size_t replica, CallWindow& window) {
  std::size_t count = 0;
  std::size_t bytes = 0;
  for (std::size_t i = 0; !left.empty(); ++i) {
    const CallBatch& next = left.front();
    count += next.items.size();
    for (const PackedItem& packed : next.items) {
      bytes += sizes[static_cast<std::size_t>(packed.item)]->pixel_bytes;
    }
    const bool has_room = next.window == CallBatch::Window::kAny && i < kBatchesInWindow &&
                          count <= window_items(limits.on_host) &&
                          bytes <= limits.window_bytes / limits.num_replicas;
    if (i > 0 && !has_room && next.window != CallBatch::Window::kContinues) return;
    add_items(next, replica, window);
    left = left.subspan(1);
  }
}

/// The sub-batches of every replica of those items whose sizes are there, none of which is shared.
std::vector<std::vector<CallBatch>> pack_whole(const CallLimits& limits, CallSizes sizes) {
  std::vector<std::size_t> known;
  std::vector<ItemSpec> specs;
  for (std::size_t item = 0; item < sizes.size(); ++item) {
    if (!sizes[item]) continue;
    known.push_back(item);
    specs.push_back(sizes[item]->spec);
  }
  const Assignment assignment = assign_items(limits.spec, specs, limits.num_replicas);
  std::vector<std::vector<CallBatch>> batches;
  for (std::size_t replica = 0; replica < limits.num_replicas; ++replica) {
    std::vector<std::size_t> share;
    for (const std::size_t place : assignment.items(replica)) share.push_back(known[place]);
    batches.push_back(pack_share(limits, sizes, share));
  }
  return batches;
}

/// Items, and shares of items that all replicas had better encode together.
std::vector<ItemPiece> pieces_of(const CallLimits& limits, CallSizes sizes) {
  std::vector<ItemSpec> specs;
  specs.reserve(sizes.size());
  for (const std::optional<ItemPlan>& size : sizes) {
    specs.push_back(size ? size->spec : ItemSpec{});
    if (limits.packing != PackingPolicy::kUnits) specs.back().units = {};
  }
  return cut_items(limits.spec, specs, limits.num_replicas);
}

}  // namespace

std::size_t head_items(const CallLimits& limits, CallSizes sizes) noexcept {
  const auto fits = [&](std::size_t count) {
    return bytes_of(sizes.first(count)) <= limits.window_bytes;
  };
  const std::size_t total = sizes.size();
  if (total <= short_call(limits.on_host) * limits.num_replicas && fits(total)) return total;
  const std::size_t first = limits.on_host ? 0 : std::min(total, kFirstOnGpu * limits.num_replicas);
  return fits(first) ? first : 0;
}

std::vector<std::vector<CallBatch>> pack_call(const CallLimits& limits, CallSizes sizes) {
  const std::vector<ItemPiece> pieces = pieces_of(limits, sizes);
  std::vector<std::optional<ItemPlan>> sizes_of_pieces;
  for (const ItemPiece& piece : pieces) {
    sizes_of_pieces.push_back(sizes[piece.item]);
    if (!sizes_of_pieces.back()) continue;
    ItemPlan& size = *sizes_of_pieces.back();
    size.spec = piece.share.spec_of(size.spec);
  }
  std::vector<std::vector<CallBatch>> batches = pack_whole(limits, sizes_of_pieces);
  for (std::vector<CallBatch>& of_replica : batches) {
    for (CallBatch& batch : of_replica) {
      for (PackedItem& packed : batch.items) {
        const ItemPiece& piece = pieces[static_cast<std::size_t>(packed.item)];
        packed.item = static_cast<std::int64_t>(piece.item);
        if (piece.share.units.count == 0) continue;
        if (!packed.path) packed.units = piece.share.units.count;
        packed.path = ItemShare::path_of(sizes[piece.item]->spec);
        packed.first_unit += piece.share.units.first;
      }
    }
  }
  return batches;
}

std::vector<CallWindow> order_call(const CallLimits& limits, CallSizes sizes) {
  const std::size_t most_items = window_items(limits.on_host);
  const std::size_t head = head_items(limits, sizes);
  std::vector<std::optional<ItemPlan>> packed(sizes.begin(), sizes.end());
  std::fill_n(packed.begin(), head, std::nullopt);
  for (const ItemPiece& piece : pieces_of(limits, packed)) {
    if (piece.share.units.count > 0) packed[piece.item].reset();  // the session shares it out
  }
  const bool are_cut = limits.packing == PackingPolicy::kUnits;
  for (std::optional<ItemPlan>& size : packed) {  // long ones are prepared apart from others
    if (are_cut && size && size->pixel_bytes > limits.window_bytes) size.reset();
  }
  std::vector<CallWindow> windows;
  for (std::size_t item = 0; item < sizes.size(); ++item) {
    if (packed[item]) continue;
    const bool in_head = item > 0 && item < head;
    const bool has_room = !windows.empty() && windows.back().items.front() >= head &&
                          windows.back().items.size() < most_items * limits.num_replicas;
    if (!in_head && !has_room) windows.emplace_back();
    windows.back().items.push_back(item);
  }
  const std::vector<std::vector<CallBatch>> batches = pack_whole(limits, packed);
  std::vector<std::span<const CallBatch>> left(batches.begin(), batches.end());
  while (std::ranges::any_of(left, [](const auto& some) { return !some.empty(); })) {
    CallWindow& window = windows.emplace_back();
    for (std::size_t replica = 0; replica < left.size(); ++replica) {
      take_batches(limits, sizes, left[replica], replica, window);
    }
  }
  return windows;
}

}  // namespace fovea
