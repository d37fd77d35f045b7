#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "fovea/options.h"
#include "fovea/tower/graph/graph_sizes.h"

namespace fovea {

/// Times of one graph under a full load and under a low one: a graph may win full and lose with a
/// part of its capacity. The low load fills the smallest of its recordings, or half of the only
/// one.
struct GraphTimes {
  GraphKey key = {};
  double replay_ms = 0;
  double eager_ms = 0;  ///< the same items without the graph

  struct Load {
    std::int64_t tokens = 0;
    double replay_ms = 0;
    double eager_ms = 0;
  };
  std::int64_t tokens = 0;      ///< of the full load
  Load low = {};                ///< no tokens: not measured
  GraphCapacity capacity = {};  ///< of the graph
  bool stored = false;          ///< handed to the manager, not measured by it
};

/// When a graph that a batch could use does not exist.
enum class MissingGraph : std::uint8_t {
  kRunEager,  ///< count a miss; graphs are made by GraphManager::capture alone
  kCapture,   ///< capture it there and then, growing memory as needed
};

/// Everything a GraphManager is built from besides model and device.
struct GraphManagerOptions {
  GraphOptions user;
  std::int64_t max_num_batched_tokens = 8192;  ///< of the consumer's step: bounds inferred budgets
  bool video_allowed = true;
  bool videos_are_pruned = false;  ///< they run eagerly then, counted as MissReason::kPruning
  PackingPolicy packing = PackingPolicy::kGreedy;
  bool reuse_units = true;  ///< packed by units, those of a run with the same pixels run once
  MissingGraph missing = MissingGraph::kRunEager;
  /// Times every graph against an eager run after its capture: packing by cost then uses
  /// milliseconds, and a graph that is slower than eager execution is not replayed.
  bool measure = false;
  /// Of an earlier manager of the same model on the same kind of device: a graph with the path and
  /// the capacity of one of them is not measured again.
  std::vector<GraphTimes> stored_times = {};
  /// Where all times go, stored and measured, at the end of a capture() or capture_in_background()
  /// that measured any. Called on the thread that captured, while batches go on; must not throw.
  std::function<void(std::span<const GraphTimes>)> store_times = {};
  /// Milliseconds since any moment, for measuring; absent: the steady clock.
  std::function<double()> clock_ms = {};
  std::int64_t log_interval = 100;  ///< items between two log lines of counters
  LogSink* log = nullptr;           ///< must outlive the manager; null: silence
};

}  // namespace fovea
