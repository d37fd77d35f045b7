// Moving, offsetting and averaging rows: one CTA per row, grid-stride; DRAM is read and written
// once.
#include "ops/cuda/common/bf16.cuh"
#include "ops/cuda/common/launch.cuh"
#include "ops/cuda/common/operands.h"
#include "ops/cuda/rowwise/rowwise.h"

namespace fovea::cuda {

namespace {

constexpr int kBlock = 128;

struct CopyWork {
  const __nv_bfloat16* x;
  const float* constant;  ///< instead of x: the same rows for every CTA
  std::int64_t x_block_rows;
  std::int64_t x_first;
  std::int64_t count;
  std::int64_t blocks;
  const std::int32_t* live;
  std::int64_t cols;
  __nv_bfloat16* out;
  std::int64_t out_block_rows;
  std::int64_t out_first;
  std::int64_t out_column;
  std::int64_t out_cols;
};

template <int kWidth>
__global__ void __launch_bounds__(kBlock) copy_row_blocks_kernel(CopyWork w) {
  wait_for_predecessor();
  const std::int64_t rows = live_rows(w.live, w.blocks) * w.count;
  for (std::int64_t r = blockIdx.x; r < rows; r += gridDim.x) {
    const std::int64_t block = r / w.count;
    const std::int64_t within = r - block * w.count;
    const std::int64_t from = (block * w.x_block_rows + w.x_first + within) * w.cols;
    __nv_bfloat16* const to =
        w.out + (block * w.out_block_rows + w.out_first + within) * w.out_cols + w.out_column;
    for (std::int64_t c = threadIdx.x * kWidth; c < w.cols; c += kBlock * kWidth) {
      float values[kWidth];
      if (w.constant != nullptr) {
        load_floats(w.constant + from + c, values);
      } else {
        load_floats(w.x + from + c, values);
      }
      store_floats(to + c, values);
    }
  }
}

template <int kWidth>
__global__ void __launch_bounds__(kBlock)
    add_table_kernel(const float* table, std::int64_t period, std::int64_t rows, std::int64_t cols,
                     const std::int32_t* live_count, __nv_bfloat16* x) {
  wait_for_predecessor();
  const std::int64_t live = live_rows(live_count, rows);
  for (std::int64_t row = blockIdx.x; row < live; row += gridDim.x) {
    const float* const entry = table + row % period * cols;
    for (std::int64_t c = threadIdx.x * kWidth; c < cols; c += kBlock * kWidth) {
      float offset[kWidth];
      float value[kWidth];
      load_floats(entry + c, offset);
      load_floats(x + row * cols + c, value);
#pragma unroll
      for (int j = 0; j < kWidth; ++j) value[j] += offset[j];
      store_floats(x + row * cols + c, value);
    }
  }
}

struct MeanWork {
  const __nv_bfloat16* x;
  const std::int32_t* runs;  ///< null: blocks of block_rows rows
  std::int64_t block_rows;
  std::int64_t blocks;
  std::int64_t cols;
  const std::int32_t* live;
  const float* bias;  ///< null where there are neither bias nor scale
  const float* scale;
  __nv_bfloat16* out;
};

template <int kWidth>
__global__ void __launch_bounds__(kBlock) mean_row_blocks_kernel(const MeanWork w) {
  wait_for_predecessor();
  const std::int64_t live = live_rows(w.live, w.blocks);
  for (std::int64_t block = blockIdx.x; block < live; block += gridDim.x) {
    const std::int32_t* const run = w.runs == nullptr ? nullptr : w.runs + 4 * block;
    const std::int64_t rows = run == nullptr ? w.block_rows : run[1];
    const std::int64_t step = (run == nullptr ? 1 : run[2]) * w.cols;
    const __nv_bfloat16* const first =
        w.x + (run == nullptr ? block * w.block_rows : run[0]) * w.cols;
    for (std::int64_t c = threadIdx.x * kWidth; c < w.cols; c += kBlock * kWidth) {
      float sum[kWidth] = {};
      for (std::int64_t i = 0; i < rows; ++i) {
        float value[kWidth];
        load_floats(first + i * step + c, value);
#pragma unroll
        for (int j = 0; j < kWidth; ++j) sum[j] += value[j];
      }
#pragma unroll
      for (int j = 0; j < kWidth; ++j) sum[j] /= static_cast<float>(rows);
      if (w.bias != nullptr) {
        float bias[kWidth];
        float scale[kWidth];
        load_floats(w.bias + c, bias);
        load_floats(w.scale + c, scale);
#pragma unroll
        for (int j = 0; j < kWidth; ++j) sum[j] = (sum[j] - bias[j]) * scale[j];
      }
      store_floats(w.out + block * w.cols + c, sum);
    }
  }
}

struct Im2colWork {
  const __nv_bfloat16* x;
  int height;
  int width;
  int stride;
  int out_h;
  int out_w;
  std::int64_t rows;
  const std::int32_t* live;
  int channels;
  __nv_bfloat16* out;
};

template <int kWidth>
__global__ void __launch_bounds__(kBlock) im2col_kernel(Im2colWork w) {
  wait_for_predecessor();
  const std::int64_t live = live_rows(w.live, w.rows);
  const int cols = 9 * w.channels;
  for (std::int64_t row = blockIdx.x; row < live; row += gridDim.x) {
    const std::int64_t image = row / (w.out_h * w.out_w);
    const int place = static_cast<int>(row - image * w.out_h * w.out_w);
    const int y = place / w.out_w * w.stride - 1;
    const int x = place % w.out_w * w.stride - 1;
    for (int c = static_cast<int>(threadIdx.x) * kWidth; c < cols; c += kBlock * kWidth) {
      const int tap = c / w.channels;  // pieces do not cross taps: channels % kWidth == 0
      const int in_y = y + tap / 3;
      const int in_x = x + tap % 3;
      float values[kWidth] = {};
      if (in_y >= 0 && in_y < w.height && in_x >= 0 && in_x < w.width) {
        load_floats(
            w.x + ((image * w.height + in_y) * w.width + in_x) * w.channels + c - tap * w.channels,
            values);
      }
      store_floats(w.out + row * cols + c, values);
    }
  }
}

}  // namespace

void copy_row_blocks(CudaStream& stream, const ops::CopyRowBlocksArgs& args, int num_sms) {
  check_bf16("copy_row_blocks", "out", args.out);
  const bool is_constant = args.x_block_rows == 0;
  const CopyWork work{.x = is_constant ? nullptr : args.x.as<__nv_bfloat16>(),
                      .constant = is_constant ? args.x.as<float>() : nullptr,
                      .x_block_rows = args.x_block_rows,
                      .x_first = args.x_first,
                      .count = args.count,
                      .blocks = args.out.shape[0] / args.out_block_rows,
                      .live = args.blocks.count,
                      .cols = args.x.shape[1],
                      .out = args.out.as<__nv_bfloat16>(),
                      .out_block_rows = args.out_block_rows,
                      .out_first = args.out_first,
                      .out_column = args.out_column,
                      .out_cols = args.out.shape[1]};
  const bool vectors = work.cols % 8 == 0 && work.out_cols % 8 == 0 && work.out_column % 8 == 0 &&
                       is_aligned(args.x.data, 16) && is_aligned(args.out.data, 16);
  launch(stream, vectors ? &copy_row_blocks_kernel<8> : &copy_row_blocks_kernel<1>,
         grid_for(work.blocks * work.count, 1, num_sms), dim3(kBlock), 0, work);
}

void add_table(CudaStream& stream, const ops::AddTableArgs& args, int num_sms) {
  check_bf16("add_table", "x", args.x);
  const std::int64_t rows = args.x.shape[0];
  const std::int64_t cols = args.x.shape[1];
  const bool vectors =
      cols % 8 == 0 && is_aligned(args.x.data, 16) && is_aligned(args.table.data, 16);
  launch(stream, vectors ? &add_table_kernel<8> : &add_table_kernel<1>, grid_for(rows, 1, num_sms),
         dim3(kBlock), 0, args.table.as<float>(), args.table.shape[0], rows, cols, args.rows.count,
         args.x.as<__nv_bfloat16>());
}

void mean_row_blocks(CudaStream& stream, const ops::MeanRowBlocksArgs& args, int num_sms) {
  check_bf16("mean_row_blocks", "out", args.out);
  const MeanWork work{.x = args.x.as<__nv_bfloat16>(),
                      .runs = args.runs ? args.runs.as<std::int32_t>() : nullptr,
                      .block_rows = args.block_rows,
                      .blocks = args.out.shape[0],
                      .cols = args.out.shape[1],
                      .live = args.blocks.count,
                      .bias = args.bias.as<float>(),
                      .scale = args.scale.as<float>(),
                      .out = args.out.as<__nv_bfloat16>()};
  const bool vectors = work.cols % 8 == 0 && is_aligned(args.x.data, 16) &&
                       is_aligned(args.out.data, 16) && is_aligned(args.bias.data, 16) &&
                       is_aligned(args.scale.data, 16);
  launch(stream, vectors ? &mean_row_blocks_kernel<8> : &mean_row_blocks_kernel<1>,
         grid_for(work.blocks, 1, num_sms), dim3(kBlock), 0, work);
}

void im2col_3x3(CudaStream& stream, const ops::Im2colArgs& args, int num_sms) {
  check_bf16("im2col_3x3", "x", args.x);
  const Im2colWork work{.x = args.x.as<__nv_bfloat16>(),
                        .height = static_cast<int>(args.height),
                        .width = static_cast<int>(args.width),
                        .stride = static_cast<int>(args.stride),
                        .out_h = static_cast<int>((args.height - 1) / args.stride + 1),
                        .out_w = static_cast<int>((args.width - 1) / args.stride + 1),
                        .rows = args.out.shape[0],
                        .live = args.rows.count,
                        .channels = static_cast<int>(args.x.shape[1]),
                        .out = args.out.as<__nv_bfloat16>()};
  const bool vectors =
      work.channels % 8 == 0 && is_aligned(args.x.data, 16) && is_aligned(args.out.data, 16);
  launch(stream, vectors ? &im2col_kernel<8> : &im2col_kernel<1>, grid_for(work.rows, 1, num_sms),
         dim3(kBlock), 0, work);
}

}  // namespace fovea::cuda
