// Normalisations on the CPU: ranges of rows on all threads, one row after the other.
#include "ops/cpu/rowwise/rowwise.h"

#include "device/cpu/cpu_device.h"
#include "ops/cpu/rowwise/row_loop.h"

namespace fovea::cpu {

namespace {

/// `all` describes every row of the capacity.
void submit(Stream& stream, NormRows norm_rows, const NormTask& all, LiveRows rows) {
  static_cast<CpuStream&>(stream).submit([=](ThreadPool& pool) {
    for_row_ranges(pool, count_live(rows, all.rows), all.cols,
                   [&](std::int64_t first, std::int64_t last) {
                     NormTask task = all;
                     task.x += first * all.cols;
                     if (task.residual != nullptr) task.residual += first * all.cols;
                     task.out += first * all.cols;
                     task.rows = last - first;
                     norm_rows(task);
                   });
  });
}

}  // namespace

void layer_norm(Stream& stream, const ops::LayerNormArgs& args, NormRows norm_rows) {
  submit(stream, norm_rows,
         {.x = args.x.as<float>(),
          .weight = args.weight.as<float>(),
          .bias = args.bias.as<float>(),
          .residual = args.residual.as<float>(),
          .epsilon = args.epsilon,
          .rows = args.x.shape[0],
          .cols = args.x.shape[1],
          .out = args.out.as<float>()},
         args.rows);
}

void rms_norm(Stream& stream, const ops::RmsNormArgs& args, NormRows norm_rows) {
  submit(stream, norm_rows,
         {.x = args.x.as<float>(),
          .weight = args.weight.as<float>(),
          .bias = nullptr,
          .residual = nullptr,
          .epsilon = args.epsilon,
          .rows = args.x.shape[0],
          .cols = args.x.shape[1],
          .out = args.out.as<float>()},
         args.rows);
}

}  // namespace fovea::cpu
