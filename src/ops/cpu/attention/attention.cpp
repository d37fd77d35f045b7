// Attention on the CPU: divides the work into tasks of one head and some queries each. The
// arithmetic of a task is in body.h, and in int16/body.h for integers.
#include "ops/cpu/attention/attention.h"

#include <algorithm>
#include <atomic>

#include "core/check.h"
#include "core/interrupt.h"
#include "core/thread_pool.h"
#include "device/cpu/cpu_device.h"
#include "ops/cpu/attention/task.h"
#include "ops/cpu/rowwise/row_loop.h"

namespace fovea::cpu {

std::int64_t task_queries(const AttentionKernel& kernel, std::int64_t head_dim) noexcept {
  constexpr std::int64_t kMost = 22 * kMaxStripLanes;
  const std::int64_t strips = kernel.task_components / (head_dim * kMaxStripLanes);
  return std::clamp(strips * kMaxStripLanes, kMaxTaskQueries, kMost);
}

namespace {

/// Queries per task: large, because a task copies the keys of its sequence once, but small enough
/// that every thread gets several tasks and that the longest sequence makes nearly equal ones.
/// Results do not depend on it.
/// @param longest sequence, >= 1.
std::int64_t choose_task_queries(std::int64_t queries, std::int64_t longest, int num_threads,
                                 std::int64_t most) {
  constexpr std::int64_t kTasksPerThread = 8;
  constexpr std::int64_t kStep = kMaxStripLanes;
  const std::int64_t wanted = queries / (kTasksPerThread * num_threads);
  const std::int64_t size = std::clamp(wanted / kStep * kStep, kStep, most);
  const std::int64_t blocks = ceil_div(longest, size);
  return round_up(ceil_div(longest, blocks), kStep);
}

/// The live sequences, checked.
struct Sequences {
  const std::int32_t* starts;  // [count + 1]
  std::int64_t count;
  std::int64_t longest;
};

Sequences read_sequences(const ops::AttentionArgs& args) {
  Sequences seqs{args.sequences.cu_seqlens.as<std::int32_t>(),
                 count_live(args.sequences.seqs, args.sequences.cu_seqlens.shape[0] - 1), 0};
  const std::int64_t rows = count_live(args.sequences.rows, args.qkv.shape[0]);
  FOVEA_CHECK(seqs.starts[0] >= 0 && seqs.starts[seqs.count] <= rows, kInternal,
              "attention: cu_seqlens spans ", seqs.starts[0], "..", seqs.starts[seqs.count], " of ",
              rows, " live rows");
  for (std::int64_t s = 0; s < seqs.count; ++s) {
    const std::int64_t length = seqs.starts[s + 1] - seqs.starts[s];
    FOVEA_CHECK(length >= 0 && length <= args.sequences.max_seqlen, kInternal,
                "attention: sequence ", s, " has ", length, " rows, expected 0 to ",
                args.sequences.max_seqlen);
    seqs.longest = std::max(seqs.longest, length);
  }
  return seqs;
}

/// The kernel of all tasks of an op, with the bounds of a task.
struct TaskKernel {
  AttentionKernel kernel;
  std::int64_t most_queries;
  std::int64_t scratch_floats;
  Rotation rotation;

  TaskKernel(const AttentionKernel& of, std::int64_t head_dim, const Rotation& angles)
      : kernel(of),
        most_queries(task_queries(of, head_dim)),
        scratch_floats(of.scratch_floats(head_dim, most_queries, 0)),
        rotation(angles) {}

  /// The angles of a row and those that follow.
  [[nodiscard]] AttentionAngles angles(std::int64_t row, std::int64_t head_dim) const {
    if (!rotation.cos) return {};
    const std::int64_t offset = row * (head_dim / 2);
    return {rotation.cos.as<float>() + offset, rotation.sin.as<float>() + offset};
  }
};

/// Numbers the tasks without a table. In units of one block of queries, sequence s begins at
/// start(s); starts are at least ceil(length / size) apart, so a few units hold no queries. Its
/// tasks are start(s) * heads and up, head by head: all heads of a sequence share its rows of qkv
/// while they are in the cache.
struct TaskNumbers {
  Sequences seqs;
  std::int64_t heads;
  std::int64_t size;  // queries per block

  [[nodiscard]] std::int64_t start(std::int64_t s) const {
    return (seqs.starts[s] - seqs.starts[0] + s * (size - 1)) / size;
  }
  [[nodiscard]] std::int64_t count() const { return start(seqs.count) * heads; }
  /// The last sequence that begins at or before a unit.
  [[nodiscard]] std::int64_t sequence_of(std::int64_t unit) const {
    std::int64_t low = 0;
    std::int64_t high = seqs.count - 1;
    while (low < high) {
      const std::int64_t middle = (low + high + 1) / 2;
      if (start(middle) <= unit) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    return low;
  }
};

void run_task(const ops::AttentionArgs& args, const TaskNumbers& tasks, std::int64_t task,
              float* scratch, const TaskKernel& task_kernel) {
  const std::int64_t s = tasks.sequence_of(task / tasks.heads);
  const std::int64_t blocks = tasks.start(s + 1) - tasks.start(s);
  const std::int64_t head = (task - tasks.start(s) * tasks.heads) / blocks;
  const std::int64_t block = (task - tasks.start(s) * tasks.heads) % blocks;
  const std::int64_t begin = tasks.seqs.starts[s];
  const std::int64_t end = tasks.seqs.starts[s + 1];
  const std::int64_t first = begin + block * tasks.size;
  if (first >= end) return;
  const std::int64_t width = args.num_heads * args.head_dim;
  const float* const qkv = args.qkv.as<float>() + head * args.head_dim;
  task_kernel.kernel.run({.q = qkv + first * 3 * width,
                          .q_stride = 3 * width,
                          .k = qkv + begin * 3 * width + width,
                          .v = qkv + begin * 3 * width + 2 * width,
                          .stride = 3 * width,
                          .num_queries = std::min(tasks.size, end - first),
                          .num_keys = end - begin,
                          .head_dim = args.head_dim,
                          .scale = args.scale,
                          .out = args.out.as<float>() + first * width + head * args.head_dim,
                          .out_stride = width,
                          .scratch = scratch,
                          .q_angles = task_kernel.angles(first, args.head_dim),
                          .k_angles = task_kernel.angles(begin, args.head_dim),
                          .prefix_keys = args.sequences.prefix_rows,
                          .first_query = first - begin});
}

void run(ThreadPool& pool, const ops::AttentionArgs& args, TensorView workspace,
         const TaskKernel& task_kernel) {
  const Sequences seqs = read_sequences(args);
  const std::int64_t rows = seqs.starts[seqs.count] - seqs.starts[0];
  if (rows == 0) return;
  const std::int64_t places =
      workspace.shape[0] / (task_kernel.scratch_floats * std::int64_t{sizeof(float)});
  const std::int64_t lanes = std::min<std::int64_t>(pool.size(), places);
  const TaskNumbers tasks{seqs, args.num_heads,
                          choose_task_queries(rows * args.num_heads, seqs.longest,
                                              static_cast<int>(lanes), task_kernel.most_queries)};
  const std::int64_t num_tasks = tasks.count();
  // One lane per place in the workspace; lanes take tasks one by one.
  std::atomic<std::int64_t> next{0};
  pool.parallel_for(std::min(lanes, num_tasks), [&](std::int64_t lane, int) {
    float* const scratch = workspace.as<float>() + lane * task_kernel.scratch_floats;
    for (std::int64_t task = next++; task < num_tasks; task = next++) {
      check_interrupt();
      run_task(args, tasks, task, scratch, task_kernel);
    }
  });
}

}  // namespace

std::size_t attention_workspace(const ops::AttentionArgs& args, int num_threads,
                                const AttentionKernel& kernel) {
  const TaskKernel task(kernel, args.head_dim, {});
  return static_cast<std::size_t>(num_threads * task.scratch_floats) * sizeof(float);
}

void attention(Stream& stream, const ops::AttentionArgs& args, TensorView workspace,
               const AttentionKernel& kernel, const Rotation& rotation) {
  const TaskKernel task(kernel, args.head_dim, rotation);
  static_cast<CpuStream&>(stream).submit(
      [args, workspace, task](ThreadPool& pool) { run(pool, args, workspace, task); });
}

}  // namespace fovea::cpu
