// One device: prepared items in, rows in the memory of their embeddings out.
#include "engine/replica.h"

#include "core/stopwatch.h"
#include "engine/output.h"

namespace fovea {

Replica::Replica(const EncoderGraphModel& model, Device& device, const GraphManagerOptions& options)
    : model_(model),
      device_(device),
      stream_(device.create_stream()),
      graphs_(model, device, options) {}

std::span<const TensorView> Replica::run(std::span<const PreparedItem* const> items,
                                         const EncodeOptions& how) {
  const DType dtype = device_.properties().activation_dtype;
  const std::int64_t width = model_.graph_spec().out_width;
  std::int64_t total_rows = 0;
  for (const PreparedItem* item : items) total_rows += item->plan.spec.out_rows;
  const std::size_t bytes = static_cast<std::size_t>(total_rows * width) * size_of(dtype);
  if (row_memory_.bytes() < bytes) {
    row_memory_ = Buffer{};  // release first: there may not be room for both
    row_memory_ = device_.allocate(bytes);
  }
  rows_.clear();
  std::byte* next = row_memory_.data();
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

void Replica::encode(std::span<const PreparedItem* const> items, const EncodeOptions& how,
                     std::span<Embedding* const> out) {
  const Stopwatch tower;
  const double packing_before = graphs_.packing_ms();
  const std::span<const TensorView> rows = run(items, how);
  const double pack_ms = graphs_.packing_ms() - packing_before;
  const double encode_ms = tower.elapsed_ms() - pack_ms;

  const Stopwatch output;
  const std::vector<ConstTensorView> host = rows_on_host();
  std::int64_t total_rows = 0;
  for (std::size_t i = 0; i < host.size(); ++i) {
    out[i]->rows = host[i].shape[0];
    out[i]->width = host[i].shape[1];
    out[i]->dtype = how.dtype;
    out[i]->data = convert_rows(host[i], how.dtype);
    total_rows += out[i]->rows;
  }
  const double output_ms = output.elapsed_ms();
  for (Embedding* const result : out) {
    const double share =
        total_rows == 0 ? 0 : static_cast<double>(result->rows) / static_cast<double>(total_rows);
    result->times.pack_ms = pack_ms * share;
    result->times.encode_ms = encode_ms * share;
    result->times.output_ms = output_ms * share;
  }
}

std::vector<ConstTensorView> Replica::rows_on_host() {
  if (device_.properties().host_memory || rows_.empty()) return {rows_.begin(), rows_.end()};
  std::size_t bytes = 0;
  for (const TensorView& view : rows_) bytes += view.bytes();
  if (host_memory_.bytes() < bytes) {
    host_memory_ = Buffer{};
    host_memory_ = device_.allocate_host(bytes);
  }
  stream_->copy(host_memory_.data(), rows_.front().data, bytes);  // rows lie one after the other
  stream_->synchronize();
  std::vector<ConstTensorView> host;
  const std::byte* next = host_memory_.data();
  for (const TensorView& view : rows_) {
    host.push_back({next, view.dtype, view.shape});
    next += view.bytes();
  }
  return host;
}

}  // namespace fovea
