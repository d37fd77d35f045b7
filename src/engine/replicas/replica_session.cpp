// One caller on one device: prepared items in, rows in their targets out.
#include "engine/replicas/replica_session.h"

#include <algorithm>

#include "core/stopwatch.h"

namespace fovea {

namespace {

/// Gives each item its share, by rows, of the times of a batch. @param elapsed_ms of the run.
void share_times(std::span<const TowerItem> items, std::span<const ItemUse> uses,
                 const RunTimes& times, double elapsed_ms) {
  const double encode_ms = elapsed_ms - times.packing_ms - times.waiting_ms;
  const auto rows_of = [](const TowerItem& item) {
    return static_cast<double>(item.spec().out_rows);
  };
  double total_rows = 0;
  for (const TowerItem& item : items) total_rows += rows_of(item);
  for (std::size_t i = 0; i < items.size(); ++i) {
    Embedding& result = *items[i].target.result;
    const double share = total_rows == 0 ? 0 : rows_of(items[i]) / total_rows;
    result.times.pack_ms = times.packing_ms * share;
    result.times.encode_ms = encode_ms * share;
    result.graph = uses[i].graph;
    result.units_reused = uses[i].units_reused;
  }
}

}  // namespace

ReplicaSession::ReplicaSession(Replica& replica) : replica_(replica), mover_(replica.device()) {}

std::span<const TensorView> ReplicaSession::run(std::span<const PreparedItem* const> items,
                                                std::span<const ItemShare> shares,
                                                const EncodeOptions& how) {
  RunTimes times;
  return run(items, shares, how, times, nullptr);
}

std::span<const TensorView> ReplicaSession::run(std::span<const PreparedItem* const> items,
                                                std::span<const ItemShare> shares,
                                                const EncodeOptions& how, RunTimes& times,
                                                Stream* reader) {
  const DType dtype = replica_.device().properties().activation_dtype;
  const std::int64_t width = replica_.model().graph_spec().out_width;
  const auto rows_of = [&](std::size_t item) {
    return shares[item].spec_of(items[item]->plan.spec).out_rows;
  };
  std::int64_t total_rows = 0;
  for (std::size_t i = 0; i < items.size(); ++i) total_rows += rows_of(i);
  const std::size_t bytes = static_cast<std::size_t>(total_rows * width) * size_of(dtype);
  std::byte* next = memory_[slot_].reserve(replica_.device(), bytes, reader != nullptr);
  rows_.clear();
  for (std::size_t i = 0; i < items.size(); ++i) {
    rows_.push_back({next, dtype, {rows_of(i), width}});
    next += rows_.back().bytes();
  }
  GraphManager& graphs = replica_.graphs();
  uses_.resize(items.size());
  const RunOptions options{.reader = reader, .uses = uses_, .shares = shares};
  times = how.enforce_eager ? graphs.execute_eager(items, rows_, options)
                            : graphs.execute(items, rows_, options);
  return rows_;
}

void ReplicaSession::keep(const TowerItem& item, const TensorView& rows, Stream& queue) {
  if (item.keep_at) {
    item.keep->store_part(replica_.device(), queue, rows, *item.keep_at);
  } else {
    item.keep->store(replica_.device(), queue, rows);
  }
}

void ReplicaSession::begin(std::span<const TowerItem> items, const EncodeOptions& how) {
  const Stopwatch tower;
  RunTimes times;
  std::vector<const PreparedItem*> prepared;
  std::vector<ItemShare> shares;
  prepared.reserve(items.size());
  shares.reserve(items.size());
  for (const TowerItem& item : items) {
    prepared.push_back(item.prepared);
    shares.push_back(item.share);
  }
  Device& device = replica_.device();
  BatchMemory& memory = memory_[slot_];
  const auto is_on_gpu = [](const TowerItem& item) { return item.target.is_on_gpu(); };
  Stream* const queue = std::ranges::any_of(items, is_on_gpu) ? &memory.readers(device) : nullptr;
  run(prepared, shares, how, times, std::ranges::all_of(items, is_on_gpu) ? queue : nullptr);
  share_times(items, uses_, times, tower.elapsed_ms());

  std::vector<RowMove> moves;
  moves.reserve(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    // In front of what waits for the stream of the caller: others may ask for these rows at once.
    if (items[i].keep != nullptr) keep(items[i], rows_[i], memory.readers(device));
    moves.emplace_back(rows_[i], items[i].target);
  }
  mover_.move(std::move(moves), queue);
  if (!device.properties().host_memory) slot_ ^= 1;
}

}  // namespace fovea
