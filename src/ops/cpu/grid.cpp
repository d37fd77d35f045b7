// Attention with relative positions, and convolution rows, on the CPU.
//
// A task of the attention is one block of queries of one head in one window. Keys and values of a
// window that is not the whole image are gathered into scratch first, overhanging tokens filled
// with those of a zero token; the arithmetic is that of plain attention plus a bias per query that
// depends on the key's row and column alone (attention_body.h): bias[q] = [q . rel_pos_h | q .
// rel_pos_w], side_h + side_w numbers instead of side_h * side_w.
#include "ops/cpu/grid.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "core/thread_pool.h"
#include "device/cpu/cpu_device.h"
#include "ops/cpu/row_loop.h"
#include "ops/cpu/vector_kernels.h"

namespace fovea::cpu {

namespace {

std::int64_t round_up(std::int64_t value, std::int64_t step) {
  return (value + step - 1) / step * step;
}

/// How an op is cut into tasks, and what a task needs. All sizes in tokens or floats.
struct GridPlan {
  explicit GridPlan(const ops::GridAttentionArgs& args)
      : side_h(args.window > 0 ? args.window : args.height),
        side_w(args.window > 0 ? args.window : args.width),
        windows_x((args.width + side_w - 1) / side_w),
        windows_y((args.height + side_h - 1) / side_h),
        gathers(args.window > 0),
        blocks((side_h * side_w + kMaxTaskQueries - 1) / kMaxTaskQueries),
        block_queries((side_h * side_w + blocks - 1) / blocks),
        head_dim(args.head_dim) {}

  [[nodiscard]] std::int64_t keys() const { return side_h * side_w; }
  [[nodiscard]] std::int64_t bias_cols() const { return side_h + side_w; }

  // Parts of a task's scratch, each a multiple of 16 floats.
  [[nodiscard]] std::int64_t task_floats() const {
    return round_up(attention_scratch_floats(head_dim, bias_cols()), 16);
  }
  [[nodiscard]] std::int64_t bias_floats() const {
    return round_up(block_queries * bias_cols(), 16);
  }
  [[nodiscard]] std::int64_t query_floats() const {
    return round_up(2 * block_queries * head_dim, 16);  // queries, and their rows of the output
  }
  [[nodiscard]] std::int64_t key_floats() const {
    return gathers ? round_up(2 * keys() * head_dim, 16) : 0;
  }
  [[nodiscard]] std::int64_t scratch_floats() const {
    return task_floats() + bias_floats() + query_floats() + key_floats();
  }

  std::int64_t side_h;
  std::int64_t side_w;
  std::int64_t windows_x;
  std::int64_t windows_y;
  bool gathers;
  std::int64_t blocks;  // of queries, per window
  std::int64_t block_queries;
  std::int64_t head_dim;
};

/// One window of one image.
struct Window {
  std::int64_t first_row;  // of the image in qkv
  std::int64_t top;
  std::int64_t left;
};

/// Row in qkv of token (y, x) of a window, or -1 where the window overhangs the image.
std::int64_t token_row(const ops::GridAttentionArgs& args, const Window& window, std::int64_t y,
                       std::int64_t x) {
  const std::int64_t image_y = window.top + y;
  const std::int64_t image_x = window.left + x;
  if (image_y >= args.height || image_x >= args.width) return -1;
  return window.first_row + image_y * args.width + image_x;
}

/// Copies part `part` (0 q, 1 k, 2 v) of one token's head.
void copy_token(const ops::GridAttentionArgs& args, std::int64_t row, std::int64_t part,
                std::int64_t head, float* to) {
  const std::int64_t channels = args.num_heads * args.head_dim;
  const std::int64_t column = part * channels + head * args.head_dim;
  const float* const from = row >= 0 ? args.qkv.as<float>() + row * 3 * channels + column
                                     : args.pad_qkv.as<float>() + column;
  std::memcpy(to, from, static_cast<std::size_t>(args.head_dim) * sizeof(float));
}

/// bias[k] = q . rel_pos_h[y - k + side_h - 1], then the same for columns.
void write_bias(const ops::GridAttentionArgs& args, const GridPlan& plan, const float* q,
                std::int64_t y, std::int64_t x, float* bias) {
  const auto dot_rows = [&](const ConstTensorView& table, std::int64_t place, std::int64_t side) {
    for (std::int64_t k = 0; k < side; ++k) {
      const float* const entry = table.as<float>() + (place - k + side - 1) * args.head_dim;
      float sum = 0;
      for (std::int64_t d = 0; d < args.head_dim; ++d) sum += q[d] * entry[d];
      *bias++ = sum;
    }
  };
  dot_rows(args.rel_pos_h, y, plan.side_h);
  dot_rows(args.rel_pos_w, x, plan.side_w);
}

/// One block of queries of one head in one window.
void run_task(const ops::GridAttentionArgs& args, const GridPlan& plan, const Window& window,
              std::int64_t head, std::int64_t block, float* scratch, const VectorKernels& kernels) {
  const std::int64_t channels = args.num_heads * args.head_dim;
  const std::int64_t dim = args.head_dim;
  float* const bias = scratch + plan.task_floats();
  float* const queries = bias + plan.bias_floats();
  float* const results = queries + plan.block_queries * dim;

  // Queries of the block that lie in the image, close together.
  std::int64_t num_queries = 0;
  const std::int64_t begin = block * plan.block_queries;
  const std::int64_t end = std::min(begin + plan.block_queries, plan.keys());
  for (std::int64_t token = begin; token < end; ++token) {
    const std::int64_t y = token / plan.side_w;
    const std::int64_t x = token % plan.side_w;
    const std::int64_t row = token_row(args, window, y, x);
    if (row < 0) continue;
    float* const q = queries + num_queries * dim;
    copy_token(args, row, 0, head, q);
    write_bias(args, plan, q, y, x, bias + num_queries * plan.bias_cols());
    ++num_queries;
  }
  if (num_queries == 0) return;

  AttentionTask task{.q = queries,
                     .q_stride = dim,
                     .num_queries = num_queries,
                     .num_keys = plan.keys(),
                     .head_dim = dim,
                     .scale = args.scale,
                     .out = results,
                     .out_stride = dim,
                     .scratch = scratch,
                     .bias = bias,
                     .bias_rows = plan.side_h,
                     .bias_cols = plan.side_w};
  if (plan.gathers) {
    float* const keys = scratch + plan.task_floats() + plan.bias_floats() + plan.query_floats();
    float* const values = keys + plan.keys() * dim;
    for (std::int64_t token = 0; token < plan.keys(); ++token) {
      const std::int64_t row = token_row(args, window, token / plan.side_w, token % plan.side_w);
      copy_token(args, row, 1, head, keys + token * dim);
      copy_token(args, row, 2, head, values + token * dim);
    }
    task.k = keys;
    task.v = values;
    task.stride = dim;
  } else {
    task.k = args.qkv.as<float>() + window.first_row * 3 * channels + channels + head * dim;
    task.v = task.k + channels;
    task.stride = 3 * channels;
  }
  kernels.attention(task);

  const float* result = results;
  for (std::int64_t token = begin; token < end; ++token) {
    const std::int64_t row = token_row(args, window, token / plan.side_w, token % plan.side_w);
    if (row < 0) continue;
    std::memcpy(args.out.as<float>() + row * channels + head * dim, result,
                static_cast<std::size_t>(dim) * sizeof(float));
    result += dim;
  }
}

void run(ThreadPool& pool, const ops::GridAttentionArgs& args, const VectorKernels& kernels) {
  const GridPlan plan(args);
  const std::int64_t image_rows = args.height * args.width;
  const std::int64_t images = count_live(args.images, args.qkv.shape[0] / image_rows);
  const std::int64_t windows = plan.windows_y * plan.windows_x;
  const std::int64_t num_tasks = images * windows * args.num_heads * plan.blocks;
  const std::int64_t places =
      args.workspace.shape[0] / (plan.scratch_floats() * std::int64_t{sizeof(float)});
  const std::int64_t lanes = std::min({std::int64_t{pool.size()}, places, num_tasks});
  // One lane per place in the workspace; lanes take tasks one by one.
  std::atomic<std::int64_t> next{0};
  pool.parallel_for(lanes, [&](std::int64_t lane, int) {
    float* const scratch = args.workspace.as<float>() + lane * plan.scratch_floats();
    for (std::int64_t task = next++; task < num_tasks; task = next++) {
      const std::int64_t block = task % plan.blocks;
      const std::int64_t head = task / plan.blocks % args.num_heads;
      const std::int64_t number = task / plan.blocks / args.num_heads;
      const std::int64_t place = number % windows;
      const Window window{number / windows * image_rows, place / plan.windows_x * plan.side_h,
                          place % plan.windows_x * plan.side_w};
      run_task(args, plan, window, head, block, scratch, kernels);
    }
  });
}

}  // namespace

std::size_t grid_attention_workspace(const ops::GridAttentionArgs& args, int num_threads) {
  return static_cast<std::size_t>(num_threads) *
         static_cast<std::size_t>(GridPlan(args).scratch_floats()) * sizeof(float);
}

void grid_attention(Stream& stream, const ops::GridAttentionArgs& args, CpuIsa isa) {
  const VectorKernels& kernels = vector_kernels(isa);
  static_cast<CpuStream&>(stream).submit(
      [args, &kernels](ThreadPool& pool) { run(pool, args, kernels); });
}

void im2col_3x3(Stream& stream, const ops::Im2colArgs& args) {
  static_cast<CpuStream&>(stream).submit([args](ThreadPool& pool) {
    const std::int64_t channels = args.x.shape[1];
    const std::int64_t out_h = (args.height - 1) / args.stride + 1;
    const std::int64_t out_w = (args.width - 1) / args.stride + 1;
    const auto bytes = static_cast<std::size_t>(channels) * sizeof(float);
    const auto write_row = [&](std::int64_t row) {
      const std::int64_t image = row / (out_h * out_w);
      const std::int64_t y = row / out_w % out_h * args.stride;
      const std::int64_t x = row % out_w * args.stride;
      float* to = args.out.as<float>() + row * args.out.shape[1];
      for (std::int64_t in_y = y - 1; in_y <= y + 1; ++in_y) {
        for (std::int64_t in_x = x - 1; in_x <= x + 1; ++in_x, to += channels) {
          if (in_y < 0 || in_y >= args.height || in_x < 0 || in_x >= args.width) {
            std::memset(to, 0, bytes);
            continue;
          }
          const std::int64_t from = (image * args.height + in_y) * args.width + in_x;
          std::memcpy(to, args.x.as<float>() + from * channels, bytes);
        }
      }
    };
    for_row_ranges(pool, count_live(args.rows, args.out.shape[0]), args.out.shape[1],
                   [&](std::int64_t first, std::int64_t last) {
                     for (std::int64_t row = first; row < last; ++row) write_row(row);
                   });
  });
}

}  // namespace fovea::cpu
