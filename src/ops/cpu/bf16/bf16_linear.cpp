// The bf16 linear layer on the CPU: packs weights, and cuts a layer into tasks. The arithmetic is
// in the leaves, one per instruction set (bf16/body.h).
#include "ops/cpu/bf16/bf16_linear.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/thread_pool.h"
#include "device/cpu/cpu_device.h"
#include "ops/cpu/linear/task_shape.h"
#include "ops/cpu/row_loop.h"

namespace fovea::cpu {

namespace {

constexpr std::int64_t kElementBytes = 2;
constexpr std::int64_t kCacheLineBytes = 64;

/// Bytes of a panel: whole steps.
std::int64_t panel_bytes(std::int64_t in_features) {
  return ceil_div(in_features, kStepValues) * kStepPairs * kPairBytes;
}

/// A cache line more than whole ones, so that the rows of a tile do not compete for the same sets.
/// A step of k is a cache line.
std::int64_t row_stride(std::int64_t in_features) {
  return (ceil_div(in_features * kElementBytes, kCacheLineBytes) + 1) * kCacheLineBytes;
}

/// Writes one column of the packed weights. @param to its first byte in its panel.
void pack_column(std::span<const std::uint16_t> weights, std::byte* to) {
  for (std::size_t k = 0; k < weights.size(); ++k) {
    std::byte* const pair = to + k / kPairK * kPairBytes;
    std::memcpy(pair + k % kPairK * kElementBytes, &weights[k], kElementBytes);
  }
}

/// Everything a recorded bf16 layer knows.
struct Bf16Call {
  Bf16Leaf leaf;
  RoundTask rows;  // all of the capacity
  Bf16Task whole;  // as if the layer were one task
  const std::int32_t* live;

  void run(ThreadPool& pool) const;
  void run_part(std::int64_t count, TaskShape shape, std::int64_t part) const;
};

void Bf16Call::run_part(std::int64_t count, TaskShape shape, std::int64_t part) const {
  const TaskPart cut = task_part(count, whole.num_panels, shape, part);
  Bf16Task task = whole;
  cut_output(task, cut);
  task.x.values += cut.row * whole.x.stride;
  task.panels += cut.panel * whole.panel_bytes;
  task.bias += cut.column();
  leaf.multiply(task);
}

void Bf16Call::run(ThreadPool& pool) const {
  const std::int64_t count = count_live({live}, rows.rows);
  if (count == 0) return;
  for_row_ranges(pool, count, rows.cols, [&](std::int64_t first, std::int64_t last) {
    const std::int64_t stride = rows.out.stride;
    leaf.round({.x = rows.x + first * rows.cols,
                .rows = last - first,
                .cols = rows.cols,
                .out = {rows.out.values + first * stride, stride}});
  });
  const TaskLimits limits{
      .tile_rows = leaf.tile_rows, .rows = leaf.task_rows, .panels = kMaxBf16TaskPanels};
  const TaskShape shape = choose_task_shape(count, whole.num_panels, limits, pool.size());
  pool.parallel_for(shape.row_parts * shape.panel_parts,
                    [&](std::int64_t part, int) { run_part(count, shape, part); });
}

}  // namespace

ops::PackedLinear pack_bf16(Device& device, ConstTensorView weight, ConstTensorView bias) {
  ops::PackedLinear packed;
  packed.in_features = weight.shape[1];
  packed.out_features = weight.shape[0];
  packed.has_bias = static_cast<bool>(bias);
  packed.dtype = DType::kBF16;
  const std::int64_t panels = ceil_div(packed.out_features, kPanelColumns);
  const std::int64_t bytes = panel_bytes(packed.in_features);
  const std::int64_t columns = panels * kPanelColumns;
  packed.weight = device.allocate(static_cast<std::size_t>(panels * bytes));
  packed.bias = device.allocate(static_cast<std::size_t>(columns) * sizeof(float));
  const auto stored_row = packed.in_features * static_cast<std::int64_t>(size_of(weight.dtype));
  const auto count = static_cast<std::size_t>(packed.in_features);
  std::vector<float> row(count);
  std::vector<std::uint16_t> rounded(count);
  for (std::int64_t n = 0; n < packed.out_features; ++n) {
    widen_to_f32(weight.dtype, weight.data + n * stored_row, row.data(), count);
    narrow_from_f32(row.data(), DType::kBF16, reinterpret_cast<std::byte*>(rounded.data()), count);
    pack_column(rounded, packed.weight.data() + n / kPanelColumns * bytes +
                             n % kPanelColumns * kPairK * kElementBytes);
  }
  if (bias) {
    widen_to_f32(bias.dtype, bias.data, reinterpret_cast<float*>(packed.bias.data()),
                 static_cast<std::size_t>(packed.out_features));
  }
  return packed;
}

std::size_t bf16_workspace(const ops::LinearArgs& args) {
  return static_cast<std::size_t>(args.x.shape[0] * row_stride(args.x.shape[1]));
}

void bf16_linear(Stream& stream, const ops::LinearArgs& args, TensorView workspace,
                 const Bf16Leaf& leaf) {
  const ops::PackedLinear& weight = args.weight;
  const Bf16Rows rows{workspace.data, row_stride(weight.in_features)};
  const Bf16Call call{.leaf = leaf,
                      .rows = {.x = args.x.as<float>(),
                               .rows = args.x.shape[0],
                               .cols = weight.in_features,
                               .out = rows},
                      .whole = {.x = rows,
                                .rows = 0,
                                .panels = weight.weight.data(),
                                .num_panels = ceil_div(weight.out_features, kPanelColumns),
                                .pairs = ceil_div(weight.in_features, kPairK),
                                .panel_bytes = panel_bytes(weight.in_features),
                                .bias = reinterpret_cast<const float*>(weight.bias.data()),
                                .residual = args.residual.as<float>(),
                                .residual_stride = weight.out_features,
                                .activation = args.activation,
                                .out = args.out.as<float>() + args.out_column,
                                .out_stride = args.out.shape[1],
                                .columns = weight.out_features},
                      .live = args.rows.count};
  static_cast<CpuStream&>(stream).submit([call](ThreadPool& pool) { call.run(pool); });
}

}  // namespace fovea::cpu
