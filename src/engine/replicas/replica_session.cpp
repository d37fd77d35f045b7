// One caller on one device: prepared items in, rows in their sinks out.
#include "engine/replicas/replica_session.h"

#include <algorithm>

#include "core/stopwatch.h"

namespace fovea {

ReplicaSession::ReplicaSession(Replica& replica)
    : replica_(replica), delivery_(replica.device()), download_(replica.device()) {}

bool ReplicaSession::RowMemory::must_change(std::size_t bytes) {
  recent.add(bytes);
  return buffer.bytes() < bytes || recent.is_far_below(buffer.bytes());
}

std::byte* ReplicaSession::reserve(std::size_t bytes, bool is_ordered) {
  RowMemory& memory = row_memory_[slot_];
  const bool changes = memory.must_change(bytes);
  if (changes || !is_ordered) delivery_.wait(slot_);
  if (changes) {
    memory.buffer = Buffer{};  // release first: there may not be room for both
    memory.buffer = replica_.device().allocate(memory.recent.largest());
  }
  return memory.buffer.data();
}

std::span<const TensorView> ReplicaSession::run(std::span<const PreparedItem* const> items,
                                                const EncodeOptions& how) {
  RunTimes times;
  return run(items, how, times, nullptr);
}

std::span<const TensorView> ReplicaSession::run(std::span<const PreparedItem* const> items,
                                                const EncodeOptions& how, RunTimes& times,
                                                Stream* reader) {
  const DType dtype = replica_.device().properties().activation_dtype;
  const std::int64_t width = replica_.model().graph_spec().out_width;
  std::int64_t total_rows = 0;
  for (const PreparedItem* item : items) total_rows += item->plan.spec.out_rows;
  const std::size_t bytes = static_cast<std::size_t>(total_rows * width) * size_of(dtype);
  std::byte* next = reserve(bytes, reader != nullptr);
  rows_.clear();
  for (const PreparedItem* item : items) {
    rows_.push_back({next, dtype, {item->plan.spec.out_rows, width}});
    next += rows_.back().bytes();
  }
  GraphManager& graphs = replica_.graphs();
  uses_.resize(items.size());
  times = how.enforce_eager ? graphs.execute_eager(items, rows_, reader, uses_)
                            : graphs.execute(items, rows_, reader, uses_);
  return rows_;
}

void ReplicaSession::begin(std::span<const PreparedItem* const> items, const EncodeOptions& how,
                           std::span<const RowSink> out) {
  const Stopwatch tower;
  RunTimes times;
  const bool stays_on_gpus = !out.empty() && std::ranges::all_of(out, &RowSink::is_on_gpu);
  Stream* const reader = stays_on_gpus ? &delivery_.queue(slot_) : nullptr;
  const std::span<const TensorView> rows = run(items, how, times, reader);
  const double encode_ms = tower.elapsed_ms() - times.packing_ms - times.waiting_ms;

  std::int64_t total_rows = 0;
  for (const TensorView& view : rows) total_rows += view.shape[0];
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double share =
        total_rows == 0 ? 0
                        : static_cast<double>(rows[i].shape[0]) / static_cast<double>(total_rows);
    out[i].result->times.pack_ms = times.packing_ms * share;
    out[i].result->times.encode_ms = encode_ms * share;
    out[i].result->graph = uses_[i];
  }
  keep(out);
  send(how, out);
  if (!replica_.device().properties().host_memory) slot_ ^= 1;
}

void ReplicaSession::keep(std::span<const RowSink> out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    // In front of what waits for the stream of the caller: others may ask for these rows at once.
    if (out[i].keep != nullptr) {
      out[i].keep->store(replica_.device(), delivery_.queue(slot_), rows_[i]);
    }
  }
}

void ReplicaSession::begin_cached(std::vector<RowCache::Claim> found, const EncodeOptions& how,
                                  std::span<const RowSink> out) {
  Device& device = replica_.device();
  Stream& queue = delivery_.queue(RowDelivery::kCached);
  std::vector<TensorView> rows[2];  // to the host, to GPUs
  std::vector<RowSink> sinks[2];
  std::vector<RowCache::Claim> to_gpus;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const bool is_on_gpu = out[i].is_on_gpu();
    if (is_on_gpu || device.properties().host_memory) found[i].restore(device, queue);
    if (is_on_gpu) found[i].slot().begin_read(queue);
    rows[is_on_gpu].push_back(found[i].rows());
    sinks[is_on_gpu].push_back(out[i]);
    (is_on_gpu ? to_gpus : reading_).push_back(std::move(found[i]));
  }
  if (!to_gpus.empty()) {
    delivery_.deliver(RowDelivery::kCached, rows[1], sinks[1], how.dtype);
    const RowMark mark = to_gpus.front().mark(device, queue);
    for (const RowCache::Claim& claim : to_gpus) claim.slot().end_read(mark);
  }
  if (sinks[0].empty()) return;
  for (const RowCache::Claim& claim : reading_) claim.slot().wait_for_rows();
  download_.begin(rows[0], how.dtype, sinks[0]);
}

void ReplicaSession::send(const EncodeOptions& how, std::span<const RowSink> out) {
  std::vector<TensorView> rows[2];  // to the host, to GPUs
  std::vector<RowSink> sinks[2];
  for (std::size_t i = 0; i < out.size(); ++i) {
    rows[out[i].is_on_gpu()].push_back(rows_[i]);
    sinks[out[i].is_on_gpu()].push_back(out[i]);
  }
  if (!sinks[1].empty()) delivery_.deliver(slot_, rows[1], sinks[1], how.dtype);
  if (sinks[0].empty()) {
    download_.finish();  // its rows are in the memory that is next
  } else {
    download_.begin(rows[0], how.dtype, sinks[0]);
  }
}

void ReplicaSession::finish() {
  download_.finish();
  reading_.clear();
  delivery_.finish();
}

void ReplicaSession::abandon() noexcept {
  try {
    download_.finish();
  } catch (...) {  // NOLINT: the caller has a failure to report already
  }
  delivery_.abandon();
  reading_.clear();
}

}  // namespace fovea
