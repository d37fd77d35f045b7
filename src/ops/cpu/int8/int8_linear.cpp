// The int8 linear layer on the CPU: packs weights, and cuts a layer into tasks. The arithmetic is
// in the leaves, one per instruction set (int8/body.h).
#include "ops/cpu/int8/int8_linear.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/thread_pool.h"
#include "device/cpu/cpu_device.h"
#include "ops/cpu/linear/task_shape.h"
#include "ops/cpu/row_loop.h"

namespace fovea::cpu {

namespace {

constexpr std::int64_t kAlignment = 64;

std::int64_t round_up(std::int64_t bytes) { return ceil_div(bytes, kAlignment) * kAlignment; }

/// A cache line more than whole ones, so that the rows of a tile do not compete for the same sets.
std::int64_t row_stride(std::int64_t in_features) { return round_up(in_features) + kAlignment; }

/// Groups of k in a panel.
std::int64_t groups_of(std::int64_t in_features) {
  return ceil_div(in_features, kStepK) * kStepGroups;
}

/// Where quantized rows lie in the workspace of a layer.
Int8Rows rows_in(const TensorView& workspace, std::int64_t rows, std::int64_t in_features) {
  const std::int64_t stride = row_stride(in_features);
  std::byte* const scale = workspace.data + rows * stride;
  std::byte* const offset = scale + round_up(rows * std::int64_t{sizeof(float)});
  std::byte* const total = offset + round_up(rows * std::int64_t{sizeof(float)});
  std::byte* const wide = total + round_up(rows * std::int64_t{sizeof(float)});
  return {.values = reinterpret_cast<std::uint8_t*>(workspace.data),
          .stride = stride,
          .scale = reinterpret_cast<float*>(scale),
          .offset = reinterpret_cast<float*>(offset),
          .total = reinterpret_cast<float*>(total),
          .wide = reinterpret_cast<WideNumbers*>(wide)};
}

Int8Rows from_row(const Int8Rows& rows, std::int64_t row) {
  return {.values = rows.values + row * rows.stride,
          .stride = rows.stride,
          .scale = rows.scale + row,
          .offset = rows.offset + row,
          .total = rows.total + row,
          .wide = rows.wide + row};
}

/// The packed layer as the leaves see it.
Int8Weights weights_of(const ops::PackedLinear& layer) {
  const std::int64_t columns = ceil_div(layer.out_features, kPanelColumns) * kPanelColumns;
  const auto* const scale = reinterpret_cast<const float*>(layer.scale.data());
  return {.panels = layer.weight.data(),
          .groups = groups_of(layer.in_features),
          .scale = scale,
          .middle = scale + columns,
          .sum = scale + 2 * columns,
          .bias = reinterpret_cast<const float*>(layer.bias.data())};
}

/// What the integers of a column of packed weights stand for: middle + scale * integer.
struct ColumnSteps {
  float middle;
  float scale;
};

/// 255 steps from the smallest weight to the largest.
ColumnSteps steps_of(std::span<const float> weights) {
  const auto [low, high] = std::ranges::minmax(weights);
  return {low / 2 + high / 2, high / 254 - low / 254};
}

/// Writes one column of the packed weights. @param to its first byte in its panel.
/// @return the sum of its integers.
float pack_column(std::span<const float> weights, const ColumnSteps& steps, std::byte* to) {
  std::int64_t sum = 0;
  for (std::size_t k = 0; k < weights.size(); ++k) {
    const float from_middle = weights[k] - steps.middle;
    const float value = steps.scale > 0 ? std::nearbyint(from_middle / steps.scale) : 0.0f;
    const auto integer = static_cast<std::int8_t>(std::clamp(value, -127.0f, 127.0f));
    const std::size_t group = k / kGroupK;
    to[group * kGroupBytes + k % kGroupK] = static_cast<std::byte>(integer);
    sum += integer;
  }
  return static_cast<float>(sum);
}

/// Everything a recorded int8 layer knows.
struct Int8Call {
  Int8Leaf leaf;
  QuantizeTask rows;  // all of the capacity
  Int8Task whole;     // as if the layer were one task
  const std::int32_t* live;

  void run(ThreadPool& pool) const;
  void run_part(std::int64_t count, TaskShape shape, std::int64_t part) const;
};

void Int8Call::run_part(std::int64_t count, TaskShape shape, std::int64_t part) const {
  const TaskPart cut = task_part(count, whole.num_panels, shape, part);
  Int8Task task = whole;
  cut_output(task, cut);
  task.x = from_row(whole.x, cut.row);
  task.weights.panels += cut.panel * whole.weights.groups * kGroupBytes;
  task.weights.scale += cut.column();
  task.weights.middle += cut.column();
  task.weights.sum += cut.column();
  task.weights.bias += cut.column();
  leaf.multiply(task);
}

void Int8Call::run(ThreadPool& pool) const {
  const std::int64_t count = count_live({live}, rows.rows);
  if (count == 0) return;
  for_row_ranges(pool, count, rows.cols, [&](std::int64_t first, std::int64_t last) {
    leaf.quantize({.x = rows.x + first * rows.cols,
                   .rows = last - first,
                   .cols = rows.cols,
                   .out = from_row(rows.out, first)});
  });
  const TaskLimits limits{
      .tile_rows = leaf.tile_rows, .rows = leaf.task_rows, .panels = kMaxInt8TaskPanels};
  const TaskShape shape = choose_task_shape(count, whole.num_panels, limits, pool.size());
  pool.parallel_for(shape.row_parts * shape.panel_parts,
                    [&](std::int64_t part, int) { run_part(count, shape, part); });
}

}  // namespace

bool suits_int8(const ConstTensorView& weight) { return weight.shape[1] <= kMaxInt8Features; }

ops::PackedLinear pack_int8(Device& device, ConstTensorView weight, ConstTensorView bias) {
  const std::int64_t columns = ceil_div(weight.shape[0], kPanelColumns) * kPanelColumns;
  ops::PackedLinear packed;
  packed.in_features = weight.shape[1];
  packed.out_features = weight.shape[0];
  packed.has_bias = static_cast<bool>(bias);
  packed.dtype = DType::kI8;
  const std::int64_t panel_bytes = groups_of(packed.in_features) * kGroupBytes;
  packed.weight = device.allocate(static_cast<std::size_t>(columns / kPanelColumns * panel_bytes));
  packed.scale = device.allocate(static_cast<std::size_t>(3 * columns) * sizeof(float));
  packed.bias = device.allocate(static_cast<std::size_t>(columns) * sizeof(float));
  auto* const scales = reinterpret_cast<float*>(packed.scale.data());
  std::vector<float> row(static_cast<std::size_t>(packed.in_features));
  const auto row_bytes = packed.in_features * static_cast<std::int64_t>(size_of(weight.dtype));
  for (std::int64_t n = 0; n < packed.out_features; ++n) {
    widen_to_f32(weight.dtype, weight.data + n * row_bytes, row.data(), row.size());
    const ColumnSteps steps = steps_of(row);
    std::byte* const to =
        packed.weight.data() + n / kPanelColumns * panel_bytes + n % kPanelColumns * kGroupK;
    scales[n] = steps.scale;
    scales[columns + n] = steps.middle;
    scales[2 * columns + n] = pack_column(row, steps, to);
  }
  if (bias) {
    widen_to_f32(bias.dtype, bias.data, reinterpret_cast<float*>(packed.bias.data()),
                 static_cast<std::size_t>(packed.out_features));
  }
  return packed;
}

std::size_t int8_workspace(const ops::LinearArgs& args) {
  const std::int64_t rows = args.x.shape[0];
  return static_cast<std::size_t>(rows * row_stride(args.x.shape[1]) +
                                  3 * round_up(rows * std::int64_t{sizeof(float)}) +
                                  rows * std::int64_t{sizeof(WideNumbers)});
}

void int8_linear(Stream& stream, const ops::LinearArgs& args, TensorView workspace,
                 const Int8Leaf& leaf) {
  const ops::PackedLinear& weight = args.weight;
  const Int8Rows rows = rows_in(workspace, args.x.shape[0], weight.in_features);
  const Int8Call call{.leaf = leaf,
                      .rows = {.x = args.x.as<float>(),
                               .rows = args.x.shape[0],
                               .cols = weight.in_features,
                               .out = rows},
                      .whole = {.x = rows,
                                .rows = 0,
                                .weights = weights_of(weight),
                                .num_panels = ceil_div(weight.out_features, kPanelColumns),
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
