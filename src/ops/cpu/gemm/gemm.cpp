// The linear layer on the CPU: brings rows into the format of a kernel and cuts the layer into
// tasks. The arithmetic is in the kernels, in the units of instruction sets (f32.h, bf16.h,
// int8.h).
#include "ops/cpu/gemm/gemm.h"

#include <algorithm>

#include "core/thread_pool.h"
#include "device/cpu/cpu_device.h"
#include "ops/cpu/gemm/panel_layout.h"
#include "ops/cpu/gemm/task_shape.h"
#include "ops/cpu/rowwise/row_loop.h"

namespace fovea::cpu {

namespace {

std::int64_t whole_lines(std::int64_t bytes) { return round_up(bytes, kLineBytes); }

/// The layout of a layer's rows in its workspace, in bytes.
struct RowLayout {
  std::int64_t stride;     ///< of values
  std::int64_t int8_rows;  ///< where they begin
  std::int64_t end;

  /// A row has a cache line more than whole ones, so that the rows of a tile do not compete for the
  /// same sets.
  RowLayout(GemmFormat format, std::int64_t rows, std::int64_t cols)
      : stride(whole_lines(cols * (format == GemmFormat::kBf16 ? 2 : 1)) + kLineBytes),
        int8_rows(rows * stride),
        end(int8_rows + (format == GemmFormat::kInt8 ? rows * std::int64_t{sizeof(Int8Row)} : 0)) {}
};

/// Everything a recorded layer knows.
struct GemmCall {
  GemmKernel kernel;
  PrepareTask rows;  // all of the capacity
  GemmTask whole;    // as if the layer were one task
  const std::int32_t* live;

  void run(ThreadPool& pool) const;
  void prepare_rows(std::int64_t first, std::int64_t last) const;
  void run_part(const TaskPart& part, std::byte* scratch) const;
};

void GemmCall::prepare_rows(std::int64_t first, std::int64_t last) const {
  PrepareTask task = rows;
  task.x += first * rows.cols;
  task.rows = last - first;
  task.values += first * rows.stride;
  if (task.int8_rows != nullptr) task.int8_rows += first;
  kernel.prepare(task);
}

void GemmCall::run_part(const TaskPart& part, std::byte* scratch) const {
  const std::int64_t column = part.column();
  GemmTask task = whole;
  task.x += part.row * whole.x_stride;
  if (task.int8_rows != nullptr) task.int8_rows += part.row;
  task.rows = part.rows;
  task.panels += part.panel * whole.panel_bytes;
  task.num_panels = part.panels;
  task.bias += column;
  if (task.int8_columns != nullptr) task.int8_columns += column;
  if (task.residual != nullptr) task.residual += part.row * whole.residual_stride + column;
  task.out += part.row * whole.out_stride + column;
  task.columns = std::min(whole.columns - column, part.panels * kPanelColumns);
  task.scratch = scratch;
  kernel.multiply(task);
}

void GemmCall::run(ThreadPool& pool) const {
  const std::int64_t count = count_live({live}, rows.rows);
  if (count == 0) return;
  if (kernel.prepare != nullptr) {
    for_row_ranges(pool, count, rows.cols,
                   [&](std::int64_t first, std::int64_t last) { prepare_rows(first, last); });
  }
  const TaskShape shape = choose_task_shape(count, whole.num_panels, kernel.limits, pool.size());
  const auto scratch_bytes = static_cast<std::size_t>(kernel.scratch_bytes);
  pool.parallel_for(shape.row_parts * shape.panel_parts, [&](std::int64_t index, int worker) {
    run_part(task_part(count, whole.num_panels, shape, index),
             scratch_bytes == 0 ? nullptr : pool.scratch(worker, scratch_bytes));
  });
}

PrepareTask rows_of(const ops::LinearArgs& args, const TensorView& workspace, GemmFormat format) {
  const RowLayout layout(format, args.x.shape[0], args.x.shape[1]);
  return {.x = args.x.as<float>(),
          .rows = args.x.shape[0],
          .cols = args.x.shape[1],
          .values = workspace.data,
          .stride = layout.stride,
          .int8_rows = format == GemmFormat::kInt8
                           ? reinterpret_cast<Int8Row*>(workspace.data + layout.int8_rows)
                           : nullptr};
}

}  // namespace

std::size_t linear_workspace(const ops::LinearArgs& args, GemmFormat format) {
  if (format == GemmFormat::kF32) return 0;
  return static_cast<std::size_t>(RowLayout(format, args.x.shape[0], args.x.shape[1]).end);
}

void linear(Stream& stream, const ops::LinearArgs& args, TensorView workspace,
            const GemmKernel& kernel) {
  const ops::PackedLinear& weight = args.weight;
  const PanelLayout layout = PanelLayout::of(kernel.format, weight.dtype);
  const PrepareTask rows = rows_of(args, workspace, kernel.format);
  const std::int64_t num_panels = ceil_div(weight.out_features, kPanelColumns);
  const bool is_prepared = kernel.prepare != nullptr;
  const GemmCall call{
      .kernel = kernel,
      .rows = rows,
      .whole = {.x = is_prepared ? rows.values : args.x.data,
                .x_stride = is_prepared ? rows.stride : rows.cols * std::int64_t{sizeof(float)},
                .int8_rows = rows.int8_rows,
                .rows = 0,
                .panels = weight.weight.data(),
                .panel_bytes = layout.panel_bytes(weight.in_features),
                .row_bytes = layout.row_bytes(),
                .depth = layout.depth(weight.in_features),
                .num_panels = num_panels,
                .bias = reinterpret_cast<const float*>(weight.bias.data()),
                .int8_columns = reinterpret_cast<const float*>(weight.scale.data()),
                .int8_stride = num_panels * kPanelColumns,
                .residual = args.residual.as<float>(),
                .residual_stride = weight.out_features,
                .activation = args.activation,
                .out = args.out.as<float>() + args.out_column,
                .out_stride = args.out.shape[1],
                .columns = weight.out_features,
                .scratch = nullptr},
      .live = args.rows.count};
  static_cast<CpuStream&>(stream).submit([call](ThreadPool& pool) { call.run(pool); });
}

}  // namespace fovea::cpu
