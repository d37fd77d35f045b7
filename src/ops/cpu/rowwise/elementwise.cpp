// Ops that take every number of their rows once, on the CPU: ranges of rows on all threads.
#include "ops/cpu/rowwise/rowwise.h"

#include <algorithm>
#include <cstring>

#include "device/cpu/cpu_device.h"
#include "ops/cpu/rowwise/row_loop.h"

namespace fovea::cpu {

namespace {

/// The rows of x that become one.
struct RowRun {
  std::int64_t first = 0;
  std::int64_t rows = 0;
  std::int64_t distance = 1;
};

RowRun run_of(const ops::MeanRowBlocksArgs& args, std::int64_t block) {
  if (!args.runs) return {.first = block * args.block_rows, .rows = args.block_rows};
  const auto* const run = args.runs.as<std::int32_t>() + 4 * block;
  return {.first = run[0], .rows = run[1], .distance = run[2]};
}

}  // namespace

void activate(Stream& stream, const ops::ActivateArgs& args, ActivateRow activate_row) {
  static_cast<CpuStream&>(stream).submit([args, activate_row](ThreadPool& pool) {
    const std::int64_t cols = args.x.shape[1];
    for_row_ranges(pool, count_live(args.rows, args.x.shape[0]), cols,
                   [&](std::int64_t first, std::int64_t last) {
                     for (std::int64_t r = first; r < last; ++r)
                       activate_row(args.activation, args.x.as<float>() + r * cols, cols);
                   });
  });
}

void gated(Stream& stream, const ops::GatedArgs& args, GateRow gate_row) {
  static_cast<CpuStream&>(stream).submit([args, gate_row](ThreadPool& pool) {
    const std::int64_t cols = args.out.shape[1];
    for_row_ranges(pool, count_live(args.rows, args.out.shape[0]), 2 * cols,
                   [&](std::int64_t first, std::int64_t last) {
                     for (std::int64_t r = first; r < last; ++r) {
                       const float* const gate = args.x.as<float>() + r * 2 * cols;
                       gate_row(args.activation, args.limit, gate, gate + cols,
                                args.out.as<float>() + r * cols, cols);
                     }
                   });
  });
}

void clamp(Stream& stream, const ops::ClampArgs& args) {
  static_cast<CpuStream&>(stream).submit([args](ThreadPool& pool) {
    const std::int64_t cols = args.x.shape[1];
    const auto* const least = args.least.as<float>();
    const auto* const most = args.most.as<float>();
    for_row_ranges(pool, count_live(args.rows, args.x.shape[0]), cols,
                   [&](std::int64_t first, std::int64_t last) {
                     for (std::int64_t r = first; r < last; ++r) {
                       const float* const x = args.x.as<float>() + r * cols;
                       float* const out = args.out.as<float>() + r * cols;
                       // x comes first in every comparison, which leaves NaN as it is.
                       for (std::int64_t c = 0; c < cols; ++c) {
                         out[c] = std::min(std::max(x[c], least[c]), most[c]);
                       }
                     }
                   });
  });
}

void copy_row_blocks(Stream& stream, const ops::CopyRowBlocksArgs& args) {
  static_cast<CpuStream&>(stream).submit([args](ThreadPool& pool) {
    const std::int64_t cols = args.x.shape[1];
    const std::int64_t out_cols = args.out.shape[1];
    const std::int64_t blocks = count_live(args.blocks, args.out.shape[0] / args.out_block_rows);
    const auto* const x = args.x.as<float>();
    auto* const out = args.out.as<float>();
    for_row_ranges(pool, blocks * args.count, cols, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t r = first; r < last; ++r) {
        const std::int64_t block = r / args.count;
        const std::int64_t within = r % args.count;
        const std::int64_t from = block * args.x_block_rows + args.x_first + within;
        const std::int64_t to = block * args.out_block_rows + args.out_first + within;
        std::memcpy(out + to * out_cols + args.out_column, x + from * cols,
                    static_cast<std::size_t>(cols) * sizeof(float));
      }
    });
  });
}

void add_table(Stream& stream, const ops::AddTableArgs& args) {
  static_cast<CpuStream&>(stream).submit([args](ThreadPool& pool) {
    const std::int64_t cols = args.x.shape[1];
    const std::int64_t period = args.table.shape[0];
    for_row_ranges(pool, count_live(args.rows, args.x.shape[0]), cols,
                   [&](std::int64_t first, std::int64_t last) {
                     for (std::int64_t r = first; r < last; ++r) {
                       const float* const entry = args.table.as<float>() + r % period * cols;
                       float* const row = args.x.as<float>() + r * cols;
                       for (std::int64_t c = 0; c < cols; ++c) row[c] += entry[c];
                     }
                   });
  });
}

void mean_row_blocks(Stream& stream, const ops::MeanRowBlocksArgs& args) {
  static_cast<CpuStream&>(stream).submit([args](ThreadPool& pool) {
    const std::int64_t cols = args.out.shape[1];
    const auto* const bias = args.bias.as<float>();
    const auto* const scale = args.scale.as<float>();
    for_row_ranges(pool, count_live(args.blocks, args.out.shape[0]), args.block_rows * cols,
                   [&](std::int64_t first, std::int64_t last) {
                     for (std::int64_t b = first; b < last; ++b) {
                       const RowRun run = run_of(args, b);
                       const float* x = args.x.as<float>() + run.first * cols;
                       float* const mean = args.out.as<float>() + b * cols;
                       std::copy_n(x, cols, mean);
                       for (std::int64_t i = 1; i < run.rows; ++i) {
                         x += run.distance * cols;
                         for (std::int64_t c = 0; c < cols; ++c) mean[c] += x[c];
                       }
                       const auto rows = static_cast<float>(run.rows);
                       for (std::int64_t c = 0; c < cols; ++c) mean[c] /= rows;
                       if (bias == nullptr) continue;
                       for (std::int64_t c = 0; c < cols; ++c) {
                         mean[c] = (mean[c] - bias[c]) * scale[c];
                       }
                     }
                   });
  });
}

}  // namespace fovea::cpu
