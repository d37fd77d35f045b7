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
          .residual = args.residual.as<float>(),
          .epsilon = args.epsilon,
          .rows = args.x.shape[0],
          .cols = args.x.shape[1],
          .out = args.out.as<float>()},
         args.rows);
}

void normalize_heads(Stream& stream, const ops::HeadAttentionArgs& args, NormRows norm_rows) {
  static_cast<CpuStream&>(stream).submit([args, norm_rows](ThreadPool& pool) {
    const std::int64_t width = args.num_heads * args.head_dim;
    const auto normalize = [&](float* heads, const ConstTensorView& weight) {
      if (!weight) return;
      norm_rows({.x = heads,
                 .weight = weight.as<float>(),
                 .bias = nullptr,
                 .residual = nullptr,
                 .epsilon = args.norms.epsilon,
                 .rows = args.num_heads,
                 .cols = args.head_dim,
                 .out = heads});
    };
    for_row_ranges(pool, count_live(args.sequences.rows, args.qkv.shape[0]), 3 * width,
                   [&](std::int64_t first, std::int64_t last) {
                     for (std::int64_t r = first; r < last; ++r) {
                       float* const row = args.qkv.as<float>() + r * 3 * width;
                       normalize(row, args.norms.q);
                       normalize(row + width, args.norms.k);
                       normalize(row + 2 * width, args.norms.v);
                     }
                   });
  });
}

}  // namespace fovea::cpu
