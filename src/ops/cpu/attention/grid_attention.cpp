// Attention with relative positions on the CPU.
//
// A task of the attention is one block of queries of one head in one window. The arithmetic is that
// of plain attention plus a bias per query that depends on the key's row and column alone
// (body.h): bias[q] = [q . rel_pos_h | q . rel_pos_w], side_h + side_w numbers instead of
// side_h * side_w. Keys and values of a window that is not the whole image are gathered into
// scratch first, overhanging tokens filled with those of a zero token.
#include "ops/cpu/attention/attention.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "core/interrupt.h"
#include "core/thread_pool.h"
#include "device/cpu/cpu_device.h"
#include "ops/cpu/rowwise/row_loop.h"

namespace fovea::cpu {

namespace {

/// The division of an op into tasks, and the memory of a task. All sizes are in tokens or floats.
struct GridPlan {
  GridPlan(const ops::GridAttentionArgs& args, const AttentionKernel& kernel)
      : height(args.height),
        width(args.width),
        side_h(args.window > 0 ? args.window : args.height),
        side_w(args.window > 0 ? args.window : args.width),
        windows_x(ceil_div(args.width, side_w)),
        windows_y(ceil_div(args.height, side_h)),
        gathers(args.window > 0),
        blocks(ceil_div(keys(), kMaxTaskQueries)),
        block_queries(ceil_div(keys(), blocks)),
        head_dim(args.head_dim),
        task_floats(kernel.scratch_floats(head_dim, kMaxTaskQueries, bias_entries())) {}

  [[nodiscard]] std::int64_t keys() const { return side_h * side_w; }
  [[nodiscard]] std::int64_t bias_entries() const { return side_h + side_w; }

  // Parts of a task's scratch, each a multiple of 16 floats.
  [[nodiscard]] std::int64_t bias_floats() const {
    return round_up(block_queries * bias_entries(), 16);
  }
  [[nodiscard]] std::int64_t query_floats() const {
    return round_up(2 * block_queries * head_dim, 16);  // queries, and their rows of the output
  }
  [[nodiscard]] std::int64_t key_floats() const {
    return gathers ? round_up(2 * keys() * head_dim, 16) : 0;
  }
  [[nodiscard]] std::int64_t scratch_floats() const {
    return task_floats + bias_floats() + query_floats() + key_floats();
  }

  /// Floats from one component to the next in a transposed table of `side` rows or columns. A query
  /// at place p begins at entry side - 1 - p and whole vectors are read.
  [[nodiscard]] std::int64_t table_stride(std::int64_t side) const {
    return round_up(std::max(side_h, side_w) + side + kMaxVectorWidth, 16);
  }
  [[nodiscard]] std::int64_t table_floats() const {
    return (table_stride(side_h) + table_stride(side_w)) * head_dim;
  }

  std::int64_t height;
  std::int64_t width;
  std::int64_t side_h;
  std::int64_t side_w;
  std::int64_t windows_x;
  std::int64_t windows_y;
  bool gathers;
  std::int64_t blocks;  // of queries, per window
  std::int64_t block_queries;
  std::int64_t head_dim;
  std::int64_t task_floats;
};

/// Relative positions transposed and from the last to the first, so that what the query at place p
/// needs for the keys at places 0, 1, ... begins at entry side - 1 - p of every row:
///   to[d][k] = table[2 * side - 2 - k][d]
struct Tables {
  const float* by_row;  // [head_dim][table_stride(side_h)]
  const float* by_col;  // [head_dim][table_stride(side_w)]
};

void transpose_table(const ConstTensorView& table, std::int64_t stride, float* to) {
  const std::int64_t entries = table.shape[0];
  const std::int64_t dim = table.shape[1];
  for (std::int64_t d = 0; d < dim; ++d, to += stride) {
    for (std::int64_t k = 0; k < entries; ++k)
      to[k] = table.as<float>()[(entries - 1 - k) * dim + d];
    std::fill(to + entries, to + stride, 0.0f);
  }
}

Tables transpose_tables(const ops::GridAttentionArgs& args, const GridPlan& plan, float* to) {
  const std::int64_t stride_h = plan.table_stride(plan.side_h);
  float* const by_col = to + stride_h * plan.head_dim;
  transpose_table(args.rel_pos_h, stride_h, to);
  transpose_table(args.rel_pos_w, plan.table_stride(plan.side_w), by_col);
  return {to, by_col};
}

/// One window of one image.
struct Window {
  std::int64_t first_row;  // of the image in qkv
  std::int64_t top;
  std::int64_t left;
};

/// Neighbouring tokens in a row of a window, all in the image or all beyond it.
struct Run {
  std::int64_t y;  // in the window
  std::int64_t x;
  std::int64_t count;
  std::int64_t row;  // in qkv; -1 beyond the image
};

/// Calls body(run) for runs that cover tokens [begin, end) of a window, in order.
template <class F>
void for_runs(const GridPlan& plan, const Window& window, std::int64_t begin, std::int64_t end,
              const F& body) {
  for (std::int64_t token = begin; token < end;) {
    const std::int64_t y = token / plan.side_w;
    const std::int64_t x = token % plan.side_w;
    const bool inside = window.top + y < plan.height && window.left + x < plan.width;
    const std::int64_t stop =
        inside ? std::min(plan.side_w, plan.width - window.left) : plan.side_w;
    const std::int64_t count = std::min(stop - x, end - token);
    body({y, x, count,
          inside ? window.first_row + (window.top + y) * plan.width + window.left + x : -1});
    token += count;
  }
}

/// Addresses of one part (0 q, 1 k, 2 v) of a head.
class HeadView {
 public:
  HeadView(const ops::GridAttentionArgs& args, std::int64_t head, std::int64_t part)
      : dim_(args.head_dim),
        stride_(3 * args.num_heads * args.head_dim),
        rows_(args.qkv.as<float>() + (part * args.num_heads + head) * dim_),
        pad_(args.pad_qkv.as<float>() + (part * args.num_heads + head) * dim_) {}

  [[nodiscard]] std::int64_t stride() const { return stride_; }
  [[nodiscard]] const float* row(std::int64_t row) const { return rows_ + row * stride_; }

  /// Copies the tokens of a run close together; @return the place after them.
  float* gather(const Run& run, float* to) const {
    const auto bytes = static_cast<std::size_t>(dim_) * sizeof(float);
    for (std::int64_t i = 0; i < run.count; ++i, to += dim_)
      std::memcpy(to, run.row < 0 ? pad_ : row(run.row + i), bytes);
    return to;
  }

 private:
  std::int64_t dim_;
  std::int64_t stride_;
  const float* rows_;
  const float* pad_;
};

/// The arguments that all tasks of an op share.
struct Work {
  const ops::GridAttentionArgs& args;
  const GridPlan& plan;
  Tables tables;
  const AttentionKernel& kernel;
};

/// Gathers the queries of tokens [begin, end) that lie in the image and computes their biases.
/// @return how many there are.
std::int64_t gather_queries(const Work& work, const Window& window, std::int64_t head,
                            std::int64_t begin, std::int64_t end, float* queries, float* bias) {
  const GridPlan& plan = work.plan;
  const HeadView all(work.args, head, 0);
  std::int64_t num_queries = 0;
  for_runs(plan, window, begin, end, [&](const Run& run) {
    if (run.row < 0) return;
    float* const q = queries + num_queries * plan.head_dim;
    all.gather(run, q);
    work.kernel.grid_bias({.q = q,
                           .q_stride = plan.head_dim,
                           .num_queries = run.count,
                           .head_dim = plan.head_dim,
                           .by_row = work.tables.by_row + plan.side_h - 1 - run.y,
                           .by_col = work.tables.by_col + plan.side_w - 1 - run.x,
                           .row_stride = plan.table_stride(plan.side_h),
                           .col_stride = plan.table_stride(plan.side_w),
                           .rows = plan.side_h,
                           .cols = plan.side_w,
                           .out = bias + num_queries * plan.bias_entries()});
    num_queries += run.count;
  });
  return num_queries;
}

/// Keys and values of a window: where they are, or gathered into `memory`.
void place_keys(const Work& work, const Window& window, std::int64_t head, float* memory,
                AttentionTask& task) {
  const HeadView k(work.args, head, 1);
  const HeadView v(work.args, head, 2);
  if (!work.plan.gathers) {
    task.k = k.row(window.first_row);
    task.v = v.row(window.first_row);
    task.stride = k.stride();
    return;
  }
  float* keys = memory;
  float* values = memory + work.plan.keys() * work.plan.head_dim;
  task.k = keys;
  task.v = values;
  task.stride = work.plan.head_dim;
  for_runs(work.plan, window, 0, work.plan.keys(), [&](const Run& run) {
    keys = k.gather(run, keys);
    values = v.gather(run, values);
  });
}

/// Writes the results of tokens [begin, end), which lie close together, to their rows.
void scatter_results(const Work& work, const Window& window, std::int64_t head, std::int64_t begin,
                     std::int64_t end, const float* results) {
  const std::int64_t dim = work.plan.head_dim;
  const std::int64_t channels = work.args.num_heads * dim;
  for_runs(work.plan, window, begin, end, [&](const Run& run) {
    if (run.row < 0) return;
    for (std::int64_t i = 0; i < run.count; ++i, results += dim) {
      std::memcpy(work.args.out.as<float>() + (run.row + i) * channels + head * dim, results,
                  static_cast<std::size_t>(dim) * sizeof(float));
    }
  });
}

/// One block of queries of one head in one window.
void run_task(const Work& work, const Window& window, std::int64_t head, std::int64_t block,
              float* scratch) {
  const GridPlan& plan = work.plan;
  float* const bias = scratch + plan.task_floats;
  float* const queries = bias + plan.bias_floats();
  float* const results = queries + plan.block_queries * plan.head_dim;
  const std::int64_t begin = block * plan.block_queries;
  const std::int64_t end = std::min(begin + plan.block_queries, plan.keys());

  const std::int64_t num_queries = gather_queries(work, window, head, begin, end, queries, bias);
  if (num_queries == 0) return;
  AttentionTask task{.q = queries,
                     .q_stride = plan.head_dim,
                     .num_queries = num_queries,
                     .num_keys = plan.keys(),
                     .head_dim = plan.head_dim,
                     .scale = work.args.scale,
                     .out = results,
                     .out_stride = plan.head_dim,
                     .scratch = scratch,
                     .bias = bias,
                     .bias_rows = plan.side_h,
                     .bias_cols = plan.side_w};
  place_keys(work, window, head, queries + plan.query_floats(), task);
  work.kernel.run(task);
  scatter_results(work, window, head, begin, end, results);
}

void run(ThreadPool& pool, const ops::GridAttentionArgs& args, TensorView workspace,
         const AttentionKernel& kernel) {
  const GridPlan plan(args, kernel);
  const std::int64_t image_rows = args.height * args.width;
  const std::int64_t images = count_live(args.images, args.qkv.shape[0] / image_rows);
  const std::int64_t windows = plan.windows_y * plan.windows_x;
  const std::int64_t num_tasks = images * windows * args.num_heads * plan.blocks;
  if (num_tasks == 0) return;
  const Work work{args, plan, transpose_tables(args, plan, workspace.as<float>()), kernel};
  float* const all_scratch = workspace.as<float>() + plan.table_floats();
  const std::int64_t places =
      (workspace.shape[0] / std::int64_t{sizeof(float)} - plan.table_floats()) /
      plan.scratch_floats();
  const std::int64_t lanes = std::min({std::int64_t{pool.size()}, places, num_tasks});
  // One lane per place in the workspace; lanes take tasks one by one.
  std::atomic<std::int64_t> next{0};
  pool.parallel_for(lanes, [&](std::int64_t lane, int) {
    float* const scratch = all_scratch + lane * plan.scratch_floats();
    for (std::int64_t task = next++; task < num_tasks; task = next++) {
      check_interrupt();
      const std::int64_t block = task % plan.blocks;
      const std::int64_t head = task / plan.blocks % args.num_heads;
      const std::int64_t number = task / plan.blocks / args.num_heads;
      const std::int64_t place = number % windows;
      const Window window{number / windows * image_rows, place / plan.windows_x * plan.side_h,
                          place % plan.windows_x * plan.side_w};
      run_task(work, window, head, block, scratch);
    }
  });
}

}  // namespace

std::size_t grid_attention_workspace(const ops::GridAttentionArgs& args, int num_threads,
                                     const AttentionKernel& kernel) {
  const GridPlan plan(args, kernel);
  return static_cast<std::size_t>(plan.table_floats() + num_threads * plan.scratch_floats()) *
         sizeof(float);
}

void grid_attention(Stream& stream, const ops::GridAttentionArgs& args, TensorView workspace,
                    const AttentionKernel& kernel) {
  static_cast<CpuStream&>(stream).submit(
      [args, workspace, kernel](ThreadPool& pool) { run(pool, args, workspace, kernel); });
}

}  // namespace fovea::cpu
