// Which graphs exist, and when they must be recorded again.
#include "graph/capture/graph_set.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/interrupt.h"
#include "fovea/error.h"
#include "graph/budgets.h"

namespace fovea {

std::vector<GraphKey> capture_order(const GraphConfig& config) {
  std::vector<GraphKey> order;
  for (std::size_t path = 0; path < config.path_budgets.size(); ++path) {
    const std::vector<std::int64_t>& budgets = config.path_budgets[path];
    for (auto budget = budgets.rbegin(); budget != budgets.rend() && *budget > 0; ++budget) {
      order.push_back({.path = static_cast<PathId>(path), .budget = *budget});
    }
  }
  return order;
}

namespace {

/// Room for as many tokens as whole units hold of `budget`.
GraphCapacity capacity_for(const GraphSpec& spec, const GraphConfig& config, PathId path,
                           std::int64_t budget) {
  const std::int64_t tokens =
      capacity_of_budget(budget, spec.paths[static_cast<std::size_t>(path)].unit);
  // A small budget has no room for as many items and sequences as the largest: kernels would start
  // blocks for sequences that cannot be.
  return {.tokens = tokens,
          .items = std::min(config.max_items, tokens),
          .seqs = std::min(config.max_seqs, tokens)};
}

/// The next smaller budget of the path; 0: none.
std::int64_t budget_below(const GraphConfig& config, const GraphKey& key) {
  const std::vector<std::int64_t>& budgets =
      config.path_budgets[static_cast<std::size_t>(key.path)];
  const auto own = std::ranges::lower_bound(budgets, key.budget);
  return own == budgets.begin() ? 0 : *std::prev(own);
}

}  // namespace

GraphCapacity graph_capacity(const GraphSpec& spec, const GraphConfig& config,
                             const GraphKey& key) {
  return capacity_for(spec, config, key.path, key.budget);
}

std::vector<GraphCapacity> recorded_sizes(const GraphSpec& spec, const GraphConfig& config,
                                          const GraphKey& key, const Device& device) {
  constexpr std::int64_t kParts = 8;
  std::vector<GraphCapacity> sizes;
  if (!device.properties().host_memory) {
    const std::int64_t below = budget_below(config, key);
    for (std::int64_t part = 1; part < kParts; ++part) {
      sizes.push_back(capacity_for(spec, config, key.path, key.budget * part / kParts));
    }
    std::erase_if(sizes, [&](const GraphCapacity& size) { return size.tokens <= below; });
  }
  sizes.push_back(graph_capacity(spec, config, key));
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());  // few units, many parts
  return sizes;
}

std::vector<GraphCapacity> rehearsed_sizes(const GraphSpec& spec, const GraphConfig& config,
                                           PathId path) {
  const auto index = static_cast<std::size_t>(path);
  const BudgetRange range = budget_range(spec, config.path_budgets[index].back());
  std::vector<std::int64_t> sizes;
  for (const std::int64_t budget : generate_budgets(range.min, range.max)) {
    for (const std::int64_t tokens : {budget / 4 * 3, budget}) {
      sizes.push_back(capacity_of_budget(tokens, spec.paths[index].unit));
    }
  }
  sort_unique(sizes);
  std::vector<GraphCapacity> capacities;
  for (const std::int64_t tokens : sizes) {
    if (tokens > 0) capacities.push_back({.tokens = tokens, .items = 1, .seqs = 1});
  }
  return capacities;
}

BudgetGraph* GraphSet::find(const GraphKey& key) const {
  const auto found = std::ranges::find(graphs_, key, &BudgetGraph::key);
  return found == graphs_.end() ? nullptr : found->get();
}

GraphSet::Graphs GraphSet::make_missing(std::span<const GraphKey> keys) const {
  Graphs missing;
  for (const GraphKey& key : keys) {
    if (find(key) != nullptr) continue;
    missing.push_back(std::make_unique<BudgetGraph>(
        model_, lane_.device(), key,
        recorded_sizes(model_.graph_spec(), config_, key, lane_.device())));
  }
  return missing;
}

void GraphSet::make_room(Graphs& graphs) {
  const bool moves = std::ranges::any_of(
      graphs, [&](const auto& graph) { return !memory_.holds(graph->key().path, graph->need()); });
  if (!moves) return;
  graphs.reserve(graphs.size() + graphs_.size());  // no graph is lost for want of a place
  for (auto& graph : graphs_) graphs.push_back(std::move(graph));
  graphs_.clear();
  try {
    for (const auto& graph : graphs) memory_.reserve(graph->key().path, graph->need());
  } catch (...) {
    memory_.clear();  // what has grown is of no use, and in the way of eager runs
    throw;
  }
}

std::span<const std::unique_ptr<BudgetGraph>> GraphSet::ensure(std::span<const GraphKey> keys) {
  Graphs missing = make_missing(keys);
  graphs_.reserve(graphs_.size() + missing.size());
  make_room(missing);
  const std::size_t first = graphs_.size();
  for (auto& graph : missing) {
    check_interrupt();
    graph->capture(lane_, memory_);
    graphs_.push_back(std::move(graph));
  }
  return std::span(graphs_).subspan(first);
}

std::vector<GraphKey> GraphSet::reserve(std::span<const GraphKey> keys) {
  Graphs graphs = make_missing(keys);
  std::vector<GraphKey> without_room;
  while (true) {
    try {
      make_room(graphs);
      return without_room;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kOutOfMemory) throw;
      const auto largest = std::ranges::max_element(
          graphs, {}, [](const auto& graph) { return graph->need().total(); });
      without_room.push_back((*largest)->key());
      graphs.erase(largest);
    }
  }
}

void GraphSet::clear() {
  graphs_.clear();
  memory_.clear();
}

std::size_t GraphSet::recording_bytes() const noexcept {
  std::size_t bytes = 0;
  for (const auto& graph : graphs_) bytes += graph->recording_bytes();
  return bytes;
}

}  // namespace fovea
