// One caller on one device: prepared items in, rows in the memory of their embeddings out.
#include "engine/replicas/replica_session.h"

#include "core/stopwatch.h"

namespace fovea {

ReplicaSession::ReplicaSession(Replica& replica) : replica_(replica), download_(replica.device()) {}

std::byte* ReplicaSession::RowMemory::reserve(Device& device, std::size_t bytes) {
  recent.add(bytes);
  if (buffer.bytes() < bytes || recent.is_far_below(buffer.bytes())) {
    buffer = Buffer{};  // release first: there may not be room for both
    buffer = device.allocate(recent.largest());
  }
  return buffer.data();
}

std::span<const TensorView> ReplicaSession::run(std::span<const PreparedItem* const> items,
                                                const EncodeOptions& how) {
  RunTimes times;
  return run(items, how, times);
}

std::span<const TensorView> ReplicaSession::run(std::span<const PreparedItem* const> items,
                                                const EncodeOptions& how, RunTimes& times) {
  const DType dtype = replica_.device().properties().activation_dtype;
  const std::int64_t width = replica_.model().graph_spec().out_width;
  std::int64_t total_rows = 0;
  for (const PreparedItem* item : items) total_rows += item->plan.spec.out_rows;
  const std::size_t bytes = static_cast<std::size_t>(total_rows * width) * size_of(dtype);
  std::byte* next = row_memory_[slot_].reserve(replica_.device(), bytes);
  rows_.clear();
  for (const PreparedItem* item : items) {
    rows_.push_back({next, dtype, {item->plan.spec.out_rows, width}});
    next += rows_.back().bytes();
  }
  GraphManager& graphs = replica_.graphs();
  times = how.enforce_eager ? graphs.execute_eager(items, rows_) : graphs.execute(items, rows_);
  return rows_;
}

void ReplicaSession::begin(std::span<const PreparedItem* const> items, const EncodeOptions& how,
                           std::span<Embedding* const> out) {
  const Stopwatch tower;
  RunTimes times;
  const std::span<const TensorView> rows = run(items, how, times);
  const double encode_ms = tower.elapsed_ms() - times.packing_ms - times.waiting_ms;

  std::int64_t total_rows = 0;
  for (const TensorView& view : rows) total_rows += view.shape[0];
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double share =
        total_rows == 0 ? 0
                        : static_cast<double>(rows[i].shape[0]) / static_cast<double>(total_rows);
    out[i]->times.pack_ms = times.packing_ms * share;
    out[i]->times.encode_ms = encode_ms * share;
  }
  download_.begin(rows, how.dtype, out);
  if (!replica_.device().properties().host_memory) slot_ ^= 1;
}

}  // namespace fovea
