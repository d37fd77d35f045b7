// The ends of a tower: pixels to patch rows, learned positions, gathered rows.
//
// patchify: one CTA per patch row, grid-stride. The bytes of the patch (one frame only when the
//   frames repeat) go to shared memory with coalesced loads, then each thread writes whole 16-byte
//   pieces of the row through a table of 3 x 256 bf16 values.
// add_positions_bilinear, add_positions_half_pixel, add_positions_bicubic: one CTA per row; 4 or 16
//   table rows are blended in f32 per column.
// add_positions_antialiased: the same of as many table rows as lie under the filter.
// interpolate_grids: one CTA per row of the result; 4 rows are blended in f32 per column.
// gather_rows: one CTA per row, 16-byte copies.
// All read and write DRAM once; the table of positions stays in L2.
#include "core/check.h"
#include "ops/cuda/common/bf16.cuh"
#include "ops/cuda/common/launch.cuh"
#include "ops/cuda/common/operands.h"
#include "ops/cuda/rowwise/rowwise.h"

namespace fovea::cuda {

namespace {

constexpr int kBlock = 128;
constexpr int kChannels = 3;
constexpr int kByteValues = 256;

struct PatchifyWork {
  const std::uint8_t* pixels;
  const int4* sources;  ///< offset, row stride, frame stride, channel stride
  const float* table;
  int patch;
  int frames;
  std::int64_t rows;
  const std::int32_t* live;
  __nv_bfloat16* out;
};

/// bytes[f][py][3 * px + c] of one patch, f < frames that differ, of planes.
__device__ void fetch_planes(const PatchifyWork& w, int4 source, int frames, std::uint8_t* bytes) {
  const int area = w.patch * w.patch;
  const std::uint8_t* const from = w.pixels + source.x;
  for (int i = static_cast<int>(threadIdx.x); i < kChannels * frames * area; i += kBlock) {
    const int c = i / (frames * area);
    const int f = i / area - c * frames;
    const int pixel = i % area;
    const int py = pixel / w.patch;
    bytes[kChannels * (f * area + pixel) + c] =
        from[std::int64_t{c} * source.w + std::int64_t{f} * source.z + std::int64_t{py} * source.y +
             pixel - py * w.patch];
  }
}

/// The same of interleaved channels.
__device__ void fetch_patch(const PatchifyWork& w, int4 source, int frames, std::uint8_t* bytes) {
  const int line = kChannels * w.patch;
  const std::uint8_t* const from = w.pixels + source.x;
  for (int i = static_cast<int>(threadIdx.x); i < frames * w.patch * line; i += kBlock) {
    const int frame = i / (w.patch * line);
    const int within = i - frame * w.patch * line;
    const int py = within / line;
    bytes[i] =
        from[std::int64_t{frame} * source.z + std::int64_t{py} * source.y + within - py * line];
  }
}

template <int kWidth>
__global__ void __launch_bounds__(kBlock) patchify_kernel(PatchifyWork w) {
  extern __shared__ std::uint8_t bytes[];
  __shared__ float table[kChannels * kByteValues];
  for (int i = static_cast<int>(threadIdx.x); i < kChannels * kByteValues; i += kBlock) {
    table[i] = w.table[i];  // constant: no need to wait for the predecessor
  }
  wait_for_predecessor();
  const int area = w.patch * w.patch;
  const int row_size = kChannels * w.frames * area;
  const std::int64_t live = live_rows(w.live, w.rows);
  for (std::int64_t row = blockIdx.x; row < live; row += gridDim.x) {
    __nv_bfloat16* const out = w.out + row * row_size;
    __syncthreads();  // the table is ready; the previous patch has been read
    const int4 source = w.sources[row];
    const bool repeats = source.z == 0;
    if (source.w > 0) {
      fetch_planes(w, source, repeats ? 1 : w.frames, bytes);
    } else {
      fetch_patch(w, source, repeats ? 1 : w.frames, bytes);
    }
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x) * kWidth; i < row_size; i += kBlock * kWidth) {
      float values[kWidth];
      const int plane = i / area;  // c * frames + f; a piece never crosses a line of the patch
      const int c = plane / w.frames;
      const int f = repeats ? 0 : plane - c * w.frames;
      const std::uint8_t* const from = bytes + kChannels * (f * area + i - plane * area) + c;
#pragma unroll
      for (int j = 0; j < kWidth; ++j) values[j] = table[c * kByteValues + from[kChannels * j]];
      store_floats(out + i, values);
    }
  }
}

/// Entries of an axis of the position table that a patch reads, and their weights.
template <int kTaps>
struct AxisTaps {
  int entry[kTaps];
  float weight[kTaps];
};

/// The two entries of an axis around a position in [0, side).
__device__ AxisTaps<2> taps_at(float position, int side) {
  const int low = static_cast<int>(position);
  const float fraction = position - static_cast<float>(low);
  return {{low, min(low + 1, side - 1)}, {1.0f - fraction, fraction}};
}

/// Of patch `i` of `n`, on an axis of `side` entries, corners aligned.
struct LinearTaps {
  static constexpr int kTaps = 2;
  __device__ static AxisTaps<kTaps> of(int i, int n, int side) {
    const float last = static_cast<float>(side - 1);
    const float step = n > 1 ? last / static_cast<float>(n - 1) : 0.0f;
    const float position = i < n / 2 || n == 1
                               ? __fmul_rn(static_cast<float>(i), step)
                               : last - __fmul_rn(static_cast<float>(n - 1 - i), step);
    return taps_at(position, side);
  }
};

/// The place of the centre of patch `i` of `n` on an axis of `side` entries.
__device__ float centre(int i, int n, int side) {
  const float scale = static_cast<float>(side) / static_cast<float>(n);
  return __fmul_rn(static_cast<float>(i) + 0.5f, scale) - 0.5f;
}

/// Of patch `i` of `n`, on an axis of `side` entries, corners not aligned.
struct HalfPixelTaps {
  static constexpr int kTaps = 2;
  __device__ static AxisTaps<kTaps> of(int i, int n, int side) {
    return taps_at(fmaxf(centre(i, n, side), 0.0f), side);
  }
};

/// Of patch `i` of `n`, on an axis of `side` entries, corners not aligned.
struct CubicTaps {
  static constexpr int kTaps = 4;
  __device__ static AxisTaps<kTaps> of(int i, int n, int side) {
    const float position = centre(i, n, side);
    const float low = floorf(position);
    const float t = position - low;
    AxisTaps<kTaps> taps{{}, {far(t + 1.0f), near(t), near(1.0f - t), far(2.0f - t)}};
#pragma unroll
    for (int k = 0; k < kTaps; ++k) {
      taps.entry[k] = min(max(static_cast<int>(low) - 1 + k, 0), side - 1);
    }
    return taps;
  }

 private:
  static constexpr float kA = -0.75f;
  __device__ static float near(float d) { return ((kA + 2) * d - (kA + 3)) * d * d + 1; }
  __device__ static float far(float d) { return ((kA * d - 5 * kA) * d + 8 * kA) * d - 4 * kA; }
};

template <class Taps, int kWidth>
__global__ void __launch_bounds__(kBlock)
    add_positions_kernel(const float* table, const int4* positions, int height, int width,
                         std::int64_t rows, int cols, const std::int32_t* live_count,
                         __nv_bfloat16* x) {
  constexpr int kTaps = Taps::kTaps;
  wait_for_predecessor();
  const std::int64_t live = live_rows(live_count, rows);
  for (std::int64_t row = blockIdx.x; row < live; row += gridDim.x) {
    const int4 p = positions[row];  // y, x, height, width
    const AxisTaps<kTaps> v = Taps::of(p.x, p.z, height);
    const AxisTaps<kTaps> h = Taps::of(p.y, p.w, width);
    for (int c = static_cast<int>(threadIdx.x) * kWidth; c < cols; c += kBlock * kWidth) {
      float sum[kWidth] = {};
#pragma unroll
      for (int k = 0; k < kTaps * kTaps; ++k) {
        const float weight = v.weight[k / kTaps] * h.weight[k % kTaps];
        float entry[kWidth];
        load_floats(
            table + (std::int64_t{v.entry[k / kTaps]} * width + h.entry[k % kTaps]) * cols + c,
            entry);
#pragma unroll
        for (int j = 0; j < kWidth; ++j) sum[j] += weight * entry[j];
      }
      float value[kWidth];
      load_floats(x + row * cols + c, value);
#pragma unroll
      for (int j = 0; j < kWidth; ++j) {
        value[j] += __bfloat162float(__float2bfloat16_rn(sum[j]));
      }
      store_floats(x + row * cols + c, value);
    }
  }
}

struct GridWork {
  const __nv_bfloat16* x;
  int height;
  int width;
  int out_height;
  int out_width;
  std::int64_t out_line_rows;
  std::int64_t rows;  ///< of all grids of out, without those behind lines
  int cols;
  __nv_bfloat16* out;
};

template <int kWidth>
__global__ void __launch_bounds__(kBlock) interpolate_grids_kernel(GridWork w) {
  wait_for_predecessor();
  for (std::int64_t row = blockIdx.x; row < w.rows; row += gridDim.x) {
    const std::int64_t line = row / w.out_width;
    const int j = static_cast<int>(row - line * w.out_width);
    const std::int64_t grid = line / w.out_height;
    const int i = static_cast<int>(line - grid * w.out_height);
    const AxisTaps<2> y = HalfPixelTaps::of(i, w.out_height, w.height);
    const AxisTaps<2> x = HalfPixelTaps::of(j, w.out_width, w.width);
    const __nv_bfloat16* const from = w.x + grid * w.height * w.width * w.cols;
    __nv_bfloat16* const to = w.out + (line * w.out_line_rows + j) * w.cols;
    for (int c = static_cast<int>(threadIdx.x) * kWidth; c < w.cols; c += kBlock * kWidth) {
      float sum[kWidth] = {};
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const std::int64_t entry = std::int64_t{y.entry[k / 2]} * w.width + x.entry[k % 2];
        const float weight = y.weight[k / 2] * x.weight[k % 2];
        float value[kWidth];
        load_floats(from + entry * w.cols + c, value);
#pragma unroll
        for (int v = 0; v < kWidth; ++v) sum[v] += weight * value[v];
      }
      store_floats(to + c, sum);
    }
  }
}

/// A filter of an axis of `side` entries around the centre of patch `i` of `n`.
struct TriangleFilter {
  float radius;
  float centre;
  int first;
  int last;  ///< excluded
  float sum = 0.0f;

  __device__ TriangleFilter(int i, int n, int side) {
    const float scale = static_cast<float>(side) / static_cast<float>(n);
    radius = fmaxf(scale, 1.0f);
    centre = __fmul_rn(scale, static_cast<float>(i) + 0.5f);
    first = max(static_cast<int>(centre - radius + 0.5f), 0);
    last = min(static_cast<int>(centre + radius + 0.5f), side);
    for (int k = first; k < last; ++k) sum += height(k);
  }

  __device__ float weight(int k) const { return height(k) / sum; }
  __device__ float height(int k) const {
    return fmaxf(1.0f - fabsf(static_cast<float>(k) + 0.5f - centre) / radius, 0.0f);
  }
};

__global__ void __launch_bounds__(kBlock)
    add_filtered_positions_kernel(const float* table, const int4* positions, int height, int width,
                                  std::int64_t rows, int cols, const std::int32_t* live_count,
                                  __nv_bfloat16* x) {
  wait_for_predecessor();
  const std::int64_t live = live_rows(live_count, rows);
  for (std::int64_t row = blockIdx.x; row < live; row += gridDim.x) {
    const int4 p = positions[row];  // y, x, height, width
    const TriangleFilter v(p.x, p.z, height);
    const TriangleFilter h(p.y, p.w, width);
    for (int c = static_cast<int>(threadIdx.x); c < cols; c += kBlock) {
      float sum = 0.0f;
      for (int i = v.first; i < v.last; ++i) {
        const float* const line = table + std::int64_t{i} * width * cols + c;
        float across = 0.0f;
        for (int j = h.first; j < h.last; ++j) across += h.weight(j) * line[std::int64_t{j} * cols];
        sum += v.weight(i) * across;
      }
      __nv_bfloat16& out = x[row * cols + c];
      out = __float2bfloat16_rn(__bfloat162float(out) + __bfloat162float(__float2bfloat16_rn(sum)));
    }
  }
}

template <class Piece>
__global__ void __launch_bounds__(kBlock)
    gather_rows_kernel(const Piece* x, const std::int32_t* index, std::int64_t rows, int pieces,
                       const std::int32_t* live_count, Piece* out) {
  wait_for_predecessor();
  const std::int64_t live = live_rows(live_count, rows);
  for (std::int64_t row = blockIdx.x; row < live; row += gridDim.x) {
    const Piece* const from = x + std::int64_t{index[row]} * pieces;
    for (int i = static_cast<int>(threadIdx.x); i < pieces; i += kBlock) {
      out[row * pieces + i] = from[i];
    }
  }
}

template <class Taps>
void launch_positions(const char* op, CudaStream& stream, const ops::AddPositionsArgs& args,
                      int num_sms) {
  check_bf16(op, "x", args.x);
  check_vectors(op, "positions", args.positions);
  const std::int64_t rows = args.x.shape[0];
  const std::int64_t cols = args.x.shape[1];
  const bool vectors =
      cols % 8 == 0 && is_aligned(args.x.data, 16) && is_aligned(args.table.data, 16);
  launch(stream, vectors ? &add_positions_kernel<Taps, 8> : &add_positions_kernel<Taps, 1>,
         grid_for(rows, 1, num_sms), dim3(kBlock), 0, args.table.as<float>(),
         args.positions.as<int4>(), args.table_height, args.table_width, rows, cols,
         args.rows.count, args.x.as<__nv_bfloat16>());
}

}  // namespace

void patchify(CudaStream& stream, const ops::PatchifyArgs& args, int num_sms) {
  check_bf16("patchify", "out", args.out);
  check_vectors("patchify", "sources", args.sources);
  const PatchifyWork work{.pixels = args.pixels.as<std::uint8_t>(),
                          .sources = args.sources.as<int4>(),
                          .table = args.table.as<float>(),
                          .patch = static_cast<int>(args.patch_size),
                          .frames = static_cast<int>(args.temporal_patch_size),
                          .rows = args.sources.shape[0],
                          .live = args.rows.count,
                          .out = args.out.as<__nv_bfloat16>()};
  const std::int64_t patch_bytes =
      kChannels * args.temporal_patch_size * args.patch_size * args.patch_size;
  constexpr std::int64_t kMaxPatchBytes = 40 * 1024;  // with the table within 48 KB
  FOVEA_CHECK(patch_bytes <= kMaxPatchBytes, kUnsupported, "patchify: a patch of ", patch_bytes,
              " bytes does not fit the GPU's shared memory (", kMaxPatchBytes, ")");
  const bool vectors = args.patch_size % 8 == 0 && is_aligned(args.out.data, 16);
  launch(stream, vectors ? &patchify_kernel<8> : &patchify_kernel<1>,
         grid_for(work.rows, 1, num_sms), dim3(kBlock), static_cast<std::size_t>(patch_bytes),
         work);
}

void add_positions_bilinear(CudaStream& stream, const ops::AddPositionsArgs& args, int num_sms) {
  launch_positions<LinearTaps>("add_positions_bilinear", stream, args, num_sms);
}

void add_positions_half_pixel(CudaStream& stream, const ops::AddPositionsArgs& args, int num_sms) {
  launch_positions<HalfPixelTaps>("add_positions_half_pixel", stream, args, num_sms);
}

void add_positions_bicubic(CudaStream& stream, const ops::AddPositionsArgs& args, int num_sms) {
  launch_positions<CubicTaps>("add_positions_bicubic", stream, args, num_sms);
}

void add_positions_antialiased(CudaStream& stream, const ops::AddPositionsArgs& args, int num_sms) {
  constexpr const char* kOp = "add_positions_antialiased";
  check_bf16(kOp, "x", args.x);
  check_vectors(kOp, "positions", args.positions);
  const std::int64_t rows = args.x.shape[0];
  launch(stream, &add_filtered_positions_kernel, grid_for(rows, 1, num_sms), dim3(kBlock), 0,
         args.table.as<float>(), args.positions.as<int4>(), args.table_height, args.table_width,
         rows, args.x.shape[1], args.rows.count, args.x.as<__nv_bfloat16>());
}

void interpolate_grids(CudaStream& stream, const ops::InterpolateGridsArgs& args, int num_sms) {
  check_bf16("interpolate_grids", "out", args.out);
  const std::int64_t cols = args.out.shape[1];
  const std::int64_t rows = args.out.shape[0] / args.out_line_rows * args.out_width;
  const GridWork work{.x = args.x.as<__nv_bfloat16>(),
                      .height = static_cast<int>(args.height),
                      .width = static_cast<int>(args.width),
                      .out_height = static_cast<int>(args.out_height),
                      .out_width = static_cast<int>(args.out_width),
                      .out_line_rows = args.out_line_rows,
                      .rows = rows,
                      .cols = static_cast<int>(cols),
                      .out = args.out.as<__nv_bfloat16>()};
  const bool vectors =
      cols % 8 == 0 && is_aligned(args.x.data, 16) && is_aligned(args.out.data, 16);
  launch(stream, vectors ? &interpolate_grids_kernel<8> : &interpolate_grids_kernel<1>,
         grid_for(rows, 1, num_sms), dim3(kBlock), 0, work);
}

void gather_rows(CudaStream& stream, const ops::GatherRowsArgs& args, int num_sms) {
  check_bf16("gather_rows", "x", args.x);
  const std::int64_t rows = args.index.shape[0];
  const std::int64_t cols = args.x.shape[1];
  auto& cuda_stream = stream;
  const dim3 grid = grid_for(rows, 1, num_sms);
  if (cols % 8 == 0 && is_aligned(args.x.data, 16) && is_aligned(args.out.data, 16)) {
    launch(cuda_stream, &gather_rows_kernel<uint4>, grid, dim3(kBlock), 0, args.x.as<uint4>(),
           args.index.as<std::int32_t>(), rows, cols / 8, args.rows.count, args.out.as<uint4>());
  } else {
    launch(cuda_stream, &gather_rows_kernel<std::uint16_t>, grid, dim3(kBlock), 0,
           args.x.as<std::uint16_t>(), args.index.as<std::int32_t>(), rows, cols, args.rows.count,
           args.out.as<std::uint16_t>());
  }
}

}  // namespace fovea::cuda
