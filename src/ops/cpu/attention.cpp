// Attention on the CPU: divides the work into tasks of one head and some queries each; the
// arithmetic of a task is in attention_body.h, and in attention16/body.h for integers.
#include "ops/cpu/attention.h"

#include <algorithm>
#include <atomic>

#include "core/check.h"
#include "core/interrupt.h"
#include "core/thread_pool.h"
#include "device/cpu/cpu_device.h"
#include "ops/cpu/attention16/task.h"
#include "ops/cpu/row_loop.h"
#include "ops/cpu/vector/vector_kernels.h"

namespace fovea::cpu {

std::int64_t attention_scratch_floats(std::int64_t head_dim, std::int64_t bias_entries) noexcept {
  constexpr std::int64_t kPanelGap = 4;  // 16 floats per panel of at least 4 components
  return kMaxTaskQueries * (2 * (head_dim + 1) + bias_entries) +
         (2 * kKeyBlock + kPanelGap) * head_dim + kKeyBlock * kMaxStripLanes;
}

namespace {

/// Queries per task: large, because a task copies the keys of its sequence once, but small enough
/// that every thread gets several tasks. Results do not depend on it.
std::int64_t choose_task_queries(std::int64_t rows, std::int64_t num_heads, int num_threads) {
  constexpr std::int64_t kTasksPerThread = 8;
  constexpr std::int64_t kStep = kMaxStripLanes;
  const std::int64_t wanted = rows * num_heads / (kTasksPerThread * num_threads);
  return std::clamp(wanted / kStep * kStep, kStep, kMaxTaskQueries);
}

/// The live sequences, checked.
struct Sequences {
  const std::int32_t* starts;  // [count + 1]
  std::int64_t count;
};

Sequences read_sequences(const ops::AttentionArgs& args) {
  const Sequences seqs{args.sequences.cu_seqlens.as<std::int32_t>(),
                       count_live(args.sequences.seqs, args.sequences.cu_seqlens.shape[0] - 1)};
  const std::int64_t rows = count_live(args.sequences.rows, args.qkv.shape[0]);
  FOVEA_CHECK(seqs.starts[0] >= 0 && seqs.starts[seqs.count] <= rows, kInternal,
              "attention: cu_seqlens spans ", seqs.starts[0], "..", seqs.starts[seqs.count], " of ",
              rows, " live rows");
  for (std::int64_t s = 0; s < seqs.count; ++s) {
    const std::int64_t length = seqs.starts[s + 1] - seqs.starts[s];
    FOVEA_CHECK(length >= 0 && length <= args.sequences.max_seqlen, kInternal,
                "attention: sequence ", s, " has ", length, " rows, expected 0 to ",
                args.sequences.max_seqlen);
  }
  return seqs;
}

using RunAttentionTask = void (*)(const AttentionTask& task);

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
              float* scratch, RunAttentionTask run_leaf) {
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
  run_leaf({.q = qkv + first * 3 * width,
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
            .scratch = scratch});
}

void run(ThreadPool& pool, const ops::AttentionArgs& args, TensorView workspace,
         RunAttentionTask run_leaf) {
  const Sequences seqs = read_sequences(args);
  const std::int64_t rows = seqs.starts[seqs.count] - seqs.starts[0];
  if (rows == 0) return;
  const std::int64_t scratch_floats = attention_scratch_floats(args.head_dim);
  const std::int64_t places = workspace.shape[0] / (scratch_floats * std::int64_t{sizeof(float)});
  const std::int64_t lanes = std::min<std::int64_t>(pool.size(), places);
  const TaskNumbers tasks{seqs, args.num_heads,
                          choose_task_queries(rows, args.num_heads, static_cast<int>(lanes))};
  const std::int64_t num_tasks = tasks.count();
  // One lane per place in the workspace; lanes take tasks one by one.
  std::atomic<std::int64_t> next{0};
  pool.parallel_for(std::min(lanes, num_tasks), [&](std::int64_t lane, int) {
    float* const scratch = workspace.as<float>() + lane * scratch_floats;
    for (std::int64_t task = next++; task < num_tasks; task = next++) {
      check_interrupt();
      run_task(args, tasks, task, scratch, run_leaf);
    }
  });
}

}  // namespace

std::size_t attention_workspace(const ops::AttentionArgs& args, int num_threads) {
  return static_cast<std::size_t>(num_threads) *
         static_cast<std::size_t>(attention_scratch_floats(args.head_dim)) * sizeof(float);
}

void attention(Stream& stream, const ops::AttentionArgs& args, TensorView workspace, CpuIsa isa) {
  const RunAttentionTask run_leaf = args.products == ops::AttentionProducts::kInt16
                                        ? attention16_leaf(isa).attention
                                        : vector_kernels(isa).attention;
  static_cast<CpuStream&>(stream).submit(
      [args, workspace, run_leaf](ThreadPool& pool) { run(pool, args, workspace, run_leaf); });
}

}  // namespace fovea::cpu
