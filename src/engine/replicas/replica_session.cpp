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
    if (items[i].target.result == nullptr) continue;
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

RunTimes ReplicaSession::run(std::span<const TowerItem> items, const EncodeOptions& how,
                             Stream* reader, TeamTable* team) {
  const DType dtype = replica_.device().properties().activation_dtype;
  const std::int64_t width = replica_.model().graph_spec().out_width;
  std::vector<const PreparedItem*> prepared;
  std::vector<ItemShare> shares;
  prepared.reserve(items.size());
  shares.reserve(items.size());
  std::int64_t total_rows = 0;
  for (const TowerItem& item : items) {
    prepared.push_back(item.prepared);
    shares.push_back(item.share);
    total_rows += item.spec().out_rows;
  }
  const std::size_t bytes = static_cast<std::size_t>(total_rows * width) * size_of(dtype);
  std::byte* next = memory_[slot_].reserve(replica_.device(), bytes, reader != nullptr);
  rows_.clear();
  for (const TowerItem& item : items) {
    rows_.push_back({next, dtype, {item.spec().out_rows, width}});
    next += rows_.back().bytes();
  }
  GraphManager& graphs = replica_.graphs();
  uses_.resize(items.size());
  const RunOptions options{.reader = reader, .uses = uses_, .shares = shares, .team = team};
  return how.enforce_eager ? graphs.execute_eager(prepared, rows_, options)
                           : graphs.execute(prepared, rows_, options);
}

void ReplicaSession::keep(const TowerItem& item, const TensorView& rows, Stream& queue) {
  if (item.keep_at) {
    item.keep->store_part(replica_.device(), queue, rows, *item.keep_at);
  } else {
    item.keep->store(replica_.device(), queue, rows);
  }
}

std::vector<ExpectedRows> ReplicaSession::expected_rows(std::span<const TowerItem> items) const {
  const std::int64_t width = replica_.model().graph_spec().out_width;
  std::vector<ExpectedRows> rows;
  rows.reserve(items.size());
  for (const TowerItem& item : items) {
    if (item.target.result != nullptr) rows.push_back({item.spec().out_rows, width, item.target});
  }
  return rows;
}

void ReplicaSession::begin(std::span<const TowerItem> items, const EncodeOptions& how,
                           TeamTable* team) {
  const Stopwatch tower;
  Device& device = replica_.device();
  BatchMemory& memory = memory_[slot_];
  const auto is_on_gpu = [](const TowerItem& item) { return item.target.is_on_gpu(); };
  Stream* const queue = std::ranges::any_of(items, is_on_gpu) ? &memory.readers(device) : nullptr;
  mover_.expect(expected_rows(items));
  RunTimes times;
  try {
    times = run(items, how, std::ranges::all_of(items, is_on_gpu) ? queue : nullptr, team);
  } catch (...) {
    mover_.expect_nothing();
    throw;
  }
  share_times(items, uses_, times, tower.elapsed_ms());

  std::vector<RowMove> moves;
  moves.reserve(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    // In front of what waits for the stream of the caller: others may ask for these rows at once.
    if (items[i].keep != nullptr) keep(items[i], rows_[i], memory.readers(device));
    if (items[i].target.result != nullptr) moves.emplace_back(rows_[i], items[i].target);
  }
  if (moves.empty()) return;
  mover_.move(std::move(moves), queue);
  if (!device.properties().host_memory) slot_ ^= 1;
}

}  // namespace fovea
