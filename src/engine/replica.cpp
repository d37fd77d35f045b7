// One device: prepared items in, rows in the memory of their embeddings out.
#include "engine/replica.h"

#include "core/stopwatch.h"

namespace fovea {

Replica::Replica(const EncoderGraphModel& model, Device& device, const GraphManagerOptions& options)
    : model_(model), device_(device), graphs_(model, device, options), download_(device) {}

std::span<const TensorView> Replica::run(std::span<const PreparedItem* const> items,
                                         const EncodeOptions& how) {
  const DType dtype = device_.properties().activation_dtype;
  const std::int64_t width = model_.graph_spec().out_width;
  std::int64_t total_rows = 0;
  for (const PreparedItem* item : items) total_rows += item->plan.spec.out_rows;
  const std::size_t bytes = static_cast<std::size_t>(total_rows * width) * size_of(dtype);
  Buffer& memory = row_memory_[slot_];
  if (memory.bytes() < bytes) {
    memory = Buffer{};  // release first: there may not be room for both
    memory = device_.allocate(bytes);
  }
  rows_.clear();
  std::byte* next = memory.data();
  for (const PreparedItem* item : items) {
    rows_.push_back({next, dtype, {item->plan.spec.out_rows, width}});
    next += rows_.back().bytes();
  }
  if (how.enforce_eager) {
    graphs_.execute_eager(items, rows_);
  } else {
    graphs_.execute(items, rows_);
  }
  return rows_;
}

void Replica::begin(std::span<const PreparedItem* const> items, const EncodeOptions& how,
                    std::span<Embedding* const> out) {
  const Stopwatch tower;
  const double packing_before = graphs_.packing_ms();
  const std::span<const TensorView> rows = run(items, how);
  const double pack_ms = graphs_.packing_ms() - packing_before;
  const double encode_ms = tower.elapsed_ms() - pack_ms;

  std::int64_t total_rows = 0;
  for (const TensorView& view : rows) total_rows += view.shape[0];
  for (std::size_t i = 0; i < out.size(); ++i) {
    const double share =
        total_rows == 0 ? 0
                        : static_cast<double>(rows[i].shape[0]) / static_cast<double>(total_rows);
    out[i]->times.pack_ms = pack_ms * share;
    out[i]->times.encode_ms = encode_ms * share;
  }
  download_.begin(rows, how.dtype, out);
  if (!device_.properties().host_memory) slot_ ^= 1;
}

}  // namespace fovea
