#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "fovea/options.h"
#include "fovea/tower/models/encoder_graph_model.h"
#include "graph/graph_config.h"
#include "graph/packing.h"

namespace fovea {

/// What the order of a call follows from besides the sizes of its items.
struct CallLimits {
  const GraphSpec& spec;
  const GraphConfig& config;
  PackingPolicy packing = PackingPolicy::kGreedy;
  bool graphs = true;  ///< false: everything runs eagerly
  std::size_t num_replicas = 1;
  bool on_host = true;  ///< the devices compute in host memory
  /// Most bytes of prepared pixels in a window, of all replicas together.
  std::size_t window_bytes = std::size_t{1} << 40;
};

/// Sizes of the items of a call; absent where only preparing an item tells its size.
using CallSizes = std::span<const std::optional<ItemPlan>>;

/// How many items at the beginning of a call run as they come: a short call as a whole (64 items
/// per replica on the host, 31 on a GPU) that fits into one window. A long call is packed as a
/// whole, but on a GPU, where the tower runs while others are prepared, it begins with the first 16
/// items per replica, so that there is soon something to overlap with.
[[nodiscard]] std::size_t head_items(const CallLimits& limits, CallSizes sizes) noexcept;

/// A sub-batch of a call.
struct CallBatch {
  SubBatch sizes;                 ///< its place in a Packing is of no use here
  std::vector<PackedItem> items;  ///< of the call, in the order of packing
  bool replayed = true;           ///< false: budgets only bound the size of an eager run

  enum class Window : std::uint8_t {
    kAny,        ///< holds whole items, which may begin a window or go with the last
    kBegins,     ///< the first of those that share items
    kContinues,  ///< has a part of an item of the last
  };
  Window window = Window::kAny;
};

/// Spreads the items of a call whose sizes are known over replicas (cut_items, assign_items), and
/// packs the share of each as its graph manager would if it got all of it at once. By cost at most
/// 4096 items are packed together, because a search takes quadratic time; items of several units
/// window by window, because all units of an item are prepared at once.
/// @return the sub-batches of every replica, in the order in which it runs them.
[[nodiscard]] std::vector<std::vector<CallBatch>> pack_call(const CallLimits& limits,
                                                            CallSizes sizes);

/// Items of a call that are prepared, run and handed over together.
struct CallWindow {
  std::vector<std::size_t> items;
  /// Of each item, ascending; empty: items are spread when their sizes are known.
  std::vector<std::size_t> replicas;
};

/// The order in which a call is worked off:
/// 1. head_items, as they come;
/// 2. items of unknown size, and those that replicas share, as they come: what cannot be read fails
///    before the bulk of the work;
/// 3. the sub-batches of the others (pack_call), of each replica as many at a time as hold no more
///    than 64 items on the host and 32 on a GPU, and its part of window_bytes; at least one and at
///    most 8, and all those that share items.
/// A graph manager that packs the items of a window of the third kind greedily finds the same
/// sub-batches again.
[[nodiscard]] std::vector<CallWindow> order_call(const CallLimits& limits, CallSizes sizes);

}  // namespace fovea
