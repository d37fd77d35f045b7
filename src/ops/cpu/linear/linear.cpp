// The linear layer on the CPU: packs weights into panels and cuts a layer into tasks. The
// arithmetic is in the leaves, one per instruction set (linear/body.h).
//
// Packed weights: ceil(out_features / 32) panels, one after the other; a panel holds 32 columns of
// the result as [in_features][32], zeros where a column does not exist. f32: in order. bf16: word
// j of a row holds column j in its lower and column j + 16 in its upper half, so that one shift and
// one mask widen 16 words to 32 floats.
#include "ops/cpu/linear/linear.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

#include "core/check.h"
#include "core/thread_pool.h"
#include "device/cpu/cpu_device.h"
#include "ops/cpu/linear/task.h"
#include "ops/cpu/linear/task_shape.h"
#include "ops/cpu/row_loop.h"

namespace fovea::cpu {

namespace {

/// Values of k transposed at a time: a tile of 4 or 8 KB, in L1.
constexpr std::int64_t kPackK = 64;

/// Part of 32 rows of the checkpoint's matrix: float, or the bits of bf16.
template <class Element>
using PackTile = std::array<std::array<Element, kPackK>, kPanelColumns>;

void read_row(DType dtype, const std::byte* from, std::size_t count, float* to) {
  widen_to_f32(dtype, from, to, count);
}

void read_row(DType, const std::byte* from, std::size_t count, std::uint16_t* to) {
  std::memcpy(to, from, count * sizeof(*to));
}

/// Writes row k of a panel. f32: in order.
void write_row(const PackTile<float>& tile, std::size_t k, std::byte* row) {
  std::array<float, kPanelColumns> values;
  for (std::size_t j = 0; j < kPanelColumns; ++j) values[j] = tile[j][k];
  std::memcpy(row, values.data(), sizeof(values));
}

/// bf16: in pairs.
void write_row(const PackTile<std::uint16_t>& tile, std::size_t k, std::byte* row) {
  std::array<std::uint32_t, kHalfPanel> pairs;
  for (std::size_t j = 0; j < kHalfPanel; ++j)
    pairs[j] = tile[j][k] | static_cast<std::uint32_t>(tile[j + kHalfPanel][k]) << 16;
  std::memcpy(row, pairs.data(), sizeof(pairs));
}

/// @tparam Element of the packed weights: float, or std::uint16_t for bf16 from a bf16 checkpoint
template <class Element>
void pack_panels(ConstTensorView weight, std::byte* panels) {
  constexpr std::int64_t kRowBytes = kPanelColumns * sizeof(Element);
  const std::int64_t out_features = weight.shape[0];
  const std::int64_t in_features = weight.shape[1];
  const auto stored_bytes = static_cast<std::int64_t>(size_of(weight.dtype));
  for (std::int64_t first = 0; first < out_features; first += kPanelColumns) {
    const std::int64_t columns = std::min(kPanelColumns, out_features - first);
    PackTile<Element> tile{};  // columns that do not exist stay zero
    for (std::int64_t k = 0; k < in_features; k += kPackK) {
      const auto depth = static_cast<std::size_t>(std::min(kPackK, in_features - k));
      for (std::int64_t j = 0; j < columns; ++j) {
        read_row(weight.dtype, weight.data + ((first + j) * in_features + k) * stored_bytes, depth,
                 tile[static_cast<std::size_t>(j)].data());
      }
      for (std::size_t i = 0; i < depth; ++i, panels += kRowBytes) write_row(tile, i, panels);
    }
  }
}

/// Everything a recorded linear layer knows.
struct LinearCall {
  LinearLeaf leaf;
  LinearTask whole;  // as if the layer were one task; rows and scratch are set when it runs
  std::int64_t capacity;
  const std::int32_t* live;

  void run(ThreadPool& pool) const;
  void run_part(std::int64_t rows, TaskShape shape, std::int64_t part,
                LinearScratch* scratch) const;
};

void LinearCall::run_part(std::int64_t rows, TaskShape shape, std::int64_t part,
                          LinearScratch* scratch) const {
  const TaskPart cut = task_part(rows, whole.num_panels, shape, part);
  LinearTask task = whole;
  cut_output(task, cut);
  task.x += cut.row * whole.x_stride;
  task.panels += cut.panel * whole.in_features * whole.row_bytes;
  task.bias += cut.column();
  task.scratch = scratch;
  leaf.run(task);
}

void LinearCall::run(ThreadPool& pool) const {
  const std::int64_t rows = count_live({live}, capacity);
  if (rows == 0) return;
  const TaskLimits limits{
      .tile_rows = leaf.tile_rows, .rows = kMaxTaskRows, .panels = leaf.task_panels};
  const TaskShape shape = choose_task_shape(rows, whole.num_panels, limits, pool.size());
  pool.parallel_for(shape.row_parts * shape.panel_parts, [&](std::int64_t part, int worker) {
    std::byte* const memory = pool.scratch(worker, sizeof(LinearScratch));
    run_part(rows, shape, part, ::new (memory) LinearScratch);
  });
}

}  // namespace

ops::PackedLinear pack_linear(Device& device, ConstTensorView weight, ConstTensorView bias) {
  const std::int64_t panels = ceil_div(weight.shape[0], kPanelColumns);
  const std::int64_t columns = panels * kPanelColumns;
  ops::PackedLinear packed;
  packed.in_features = weight.shape[1];
  packed.out_features = weight.shape[0];
  packed.has_bias = static_cast<bool>(bias);
  packed.dtype = weight.dtype == DType::kBF16 ? DType::kBF16 : DType::kF32;
  packed.weight = device.allocate(static_cast<std::size_t>(columns * packed.in_features) *
                                  size_of(packed.dtype));
  packed.bias = device.allocate(static_cast<std::size_t>(columns) * sizeof(float));
  if (packed.dtype == DType::kBF16) {
    pack_panels<std::uint16_t>(weight, packed.weight.data());
  } else {
    pack_panels<float>(weight, packed.weight.data());
  }
  if (bias) {
    widen_to_f32(bias.dtype, bias.data, reinterpret_cast<float*>(packed.bias.data()),
                 static_cast<std::size_t>(packed.out_features));
  }
  return packed;
}

void linear(Stream& stream, const ops::LinearArgs& args, const LinearLeaf& leaf) {
  const ops::PackedLinear& weight = args.weight;
  const LinearCall call{
      .leaf = leaf,
      .whole = {.x = args.x.as<float>(),
                .x_stride = args.x.shape[1],
                .rows = 0,
                .panels = weight.weight.data(),
                .paired = weight.dtype == DType::kBF16,
                .row_bytes = kPanelColumns * static_cast<std::int64_t>(size_of(weight.dtype)),
                .num_panels = ceil_div(weight.out_features, kPanelColumns),
                .in_features = weight.in_features,
                .bias = reinterpret_cast<const float*>(weight.bias.data()),
                .residual = args.residual.as<float>(),
                .residual_stride = weight.out_features,
                .activation = args.activation,
                .out = args.out.as<float>() + args.out_column,
                .out_stride = args.out.shape[1],
                .columns = weight.out_features,
                .scratch = nullptr},
      .capacity = args.x.shape[0],
      .live = args.rows.count};
  static_cast<CpuStream&>(stream).submit([call](ThreadPool& pool) { call.run(pool); });
}

}  // namespace fovea::cpu
