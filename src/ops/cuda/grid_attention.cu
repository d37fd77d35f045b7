// Attention with decomposed relative positions, with the tensor-core instructions of one warp.
//
// A block of four warps computes 64 queries of one head in one window; a warp owns 16 of them. Only
// tokens of the image are queries; tokens that overhang it are keys like any other, with what a
// token of zeros gives. The steps over blocks of 64 keys are those of attention_mma.cu, with a
// bias:
//   s_j = (scale q . k_j + q . rel_pos_h[..] + q . rel_pos_w[..]) log2 e
// Before them the block multiplies its queries with the relative positions they can meet, also on
// the matrix unit, and keeps what each query adds to every row and every column of keys in shared
// memory, in f32: side_h + side_w numbers instead of side_h * side_w. Relative positions and padded
// tokens are rounded to bf16 for the products, which is what the checkpoint holds; biases and
// scores stay f32, the weights are rounded to bf16 for the second product, and the result once.
//
// Blocks of images that are not live write zeros to the rows they would have computed.
#include <cmath>

#include "core/check.h"
#include "ops/cuda/attention_tiles.cuh"
#include "ops/cuda/bf16.cuh"
#include "ops/cuda/cuda_kernels.h"
#include "ops/cuda/grid_attention.h"
#include "ops/cuda/launch.cuh"
#include "ops/cuda/ptx.cuh"

namespace fovea::cuda {

namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * 32;
constexpr int kQueries = kWarps * 16;  // of a block
constexpr int kKeys = 64;              // of a step
constexpr int kStages = 2;

/// Keys and values of one step, or relative positions, [kKeys][kDim] each; rows padded by 16 bytes
/// so that eight rows of a matrix load fall into different banks.
template <int kDim>
struct Stage {
  __nv_bfloat16 keys[kKeys][kDim + 8];
  __nv_bfloat16 values[kKeys][kDim + 8];
};

/// Floats from one query to the next among the biases: at least `side`, and such that the eight
/// queries of a warp's access fall into different banks.
__host__ __device__ constexpr int bias_stride(int side, int banks_apart) {
  constexpr int kBanks = 32;
  return (side - banks_apart + kBanks - 1) / kBanks * kBanks + banks_apart;
}
constexpr int kRowBanks = 4;  // eight queries, one row of keys each
constexpr int kColBanks = 8;  // four queries at a time, eight columns of keys each

/// Shared memory of a block behind its stages.
struct Biases {
  float* by_row;  // [kQueries][stride_h], in units of log2
  float* by_col;  // [kQueries][stride_w]
  int stride_h;
  int stride_w;
};

/// Row and column of a key, for each key of a step.
struct KeyPlaces {
  short2 at[kStages][kKeys];
};

/// One window of one image.
struct Window {
  int first_row;  // of the image in qkv
  int top;
  int left;
  int rows;  // of the window that lie in the image
  int cols;

  /// Row in qkv of place (y, x); -1 beyond the image.
  [[nodiscard]] __device__ int row_of(const GridWork& w, int y, int x) const {
    return y < rows && x < cols ? first_row + (top + y) * w.width + left + x : -1;
  }
  [[nodiscard]] __device__ int num_queries() const { return rows * cols; }
  /// Place of the query number `index` among those in the image.
  [[nodiscard]] __device__ int2 place_of_query(int index) const {
    const int y = index / cols;
    return {index - y * cols, y};
  }
};

__device__ Window make_window(const GridWork& w, int number) {
  const int windows = w.windows_y * w.windows_x;
  const int image = number / windows;
  const int place = number - image * windows;
  const int y = place / w.windows_x;
  Window window{};
  window.first_row = image * w.height * w.width;
  window.top = y * w.side_h;
  window.left = (place - y * w.windows_x) * w.side_w;
  window.rows = min(w.side_h, w.height - window.top);
  window.cols = min(w.side_w, w.width - window.left);
  return window;
}

/// What every thread of a block knows.
struct Block {
  const GridWork& work;
  Window window;
  int head;
  int first_query;

  [[nodiscard]] __device__ std::int64_t channels() const {
    return std::int64_t{work.num_heads} * work.head_dim;
  }
  /// Part 0 (q), 1 (k) or 2 (v) of a row's head.
  [[nodiscard]] __device__ const __nv_bfloat16* row(int row, int part) const {
    return work.qkv + (std::int64_t{row} * 3 + part) * channels() + head * work.head_dim;
  }
  [[nodiscard]] __device__ const float* pad(int part) const {
    return work.pad_qkv + part * channels() + head * work.head_dim;
  }
};

/// Writes eight numbers, rounded.
__device__ void store_rounded(const float* from, __nv_bfloat16* to) {
  float values[8];
  load_floats<8>(from, values);
  store_floats<8>(to, values);
}

/// Starts copying keys and values [first, first + kKeys) of the window, and notes where they are;
/// zeros beyond its end.
template <int kDim>
__device__ void fetch(const Block& b, int first, Stage<kDim>& stage, short2* places) {
  constexpr int kPieces = kDim / 8;  // 16-byte pieces of a row
  const GridWork& w = b.work;
  const int num_keys = w.side_h * w.side_w;
  for (int i = static_cast<int>(threadIdx.x); i < kKeys * kPieces; i += kThreads) {
    const int row = i / kPieces;
    const int dim = (i - row * kPieces) * 8;
    const int key = first + row;
    const int y = key / w.side_w;
    const int x = key - y * w.side_w;
    const int token = key < num_keys ? b.window.row_of(w, y, x) : -1;
    if (dim == 0)
      places[row] = make_short2(static_cast<short>(min(y, w.side_h - 1)), static_cast<short>(x));
    if (key < num_keys && token < 0 && dim < w.head_dim) {
      store_rounded(b.pad(1) + dim, &stage.keys[row][dim]);
      store_rounded(b.pad(2) + dim, &stage.values[row][dim]);
      continue;
    }
    const bool valid = token >= 0 && dim < w.head_dim;
    const int from = max(token, b.window.first_row);
    ptx::copy_async(ptx::shared_address(&stage.keys[row][dim]), b.row(from, 1) + (valid ? dim : 0),
                    valid);
    ptx::copy_async(ptx::shared_address(&stage.values[row][dim]),
                    b.row(from, 2) + (valid ? dim : 0), valid);
  }
}

/// The matrix-unit operand of the 16 queries of this warp; lane l has rows l / 4 and l / 4 + 8.
template <int kDim>
__device__ void load_queries(const Block& b, const int (&rows)[2],
                             std::uint32_t (&q)[kDim / 16][4]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int i = 0; i < kDim / 16 * 4; ++i) {
    const int dim = i / 2 * 8 + lane % 4 * 2;
    const int row = rows[i % 2];
    q[i / 4][i % 4] = row >= 0 && dim < b.work.head_dim
                          ? *reinterpret_cast<const std::uint32_t*>(b.row(row, 0) + dim)
                          : 0u;
  }
}

/// products[16 x kKeys] += q rows^T of one warp.
template <int kDim>
__device__ void multiply_rows(const std::uint32_t (&q)[kDim / 16][4],
                              const __nv_bfloat16 (&rows)[kKeys][kDim + 8],
                              float (&products)[kKeys / 8][4]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int row = lane / 16 * 8 + lane % 8;
  const int dim = lane / 8 % 2 * 8;
#pragma unroll
  for (int step = 0; step < kDim / 16; ++step) {
#pragma unroll
    for (int pair = 0; pair < kKeys / 16; ++pair) {
      std::uint32_t m[4];
      ptx::load_matrices(ptx::shared_address(&rows[pair * 16 + row][step * 16 + dim]), m);
      ptx::multiply_add(products[2 * pair], q[step], m[0], m[1]);
      ptx::multiply_add(products[2 * pair + 1], q[step], m[2], m[3]);
    }
  }
}

/// What the two queries of a lane add to every key along one axis: bias[k] = log2 e * q . table[p -
/// k + side - 1], p their places on that axis. The block's places lie in [low, high].
template <int kDim>
__device__ void compute_bias(const Block& b, const std::uint32_t (&q)[kDim / 16][4],
                             const float* table, int side, int low, int high,
                             const int (&places)[2], float* const (&bias)[2], Stage<kDim>& stage) {
  constexpr int kPieces = kDim / 8;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int end = high + side;  // entries [low, end) can be met
  for (int first = low; first < end; first += kKeys) {
    __syncthreads();  // everyone has read what was there before
    for (int i = static_cast<int>(threadIdx.x); i < kKeys * kPieces; i += kThreads) {
      const int row = i / kPieces;
      const int dim = (i - row * kPieces) * 8;
      const int head_dim = b.work.head_dim;
      auto* const to = &stage.keys[row][dim];
      if (first + row < end && dim < head_dim) {
        store_rounded(table + (first + row) * head_dim + dim, to);
      } else {
        *reinterpret_cast<uint4*>(to) = uint4{};
      }
    }
    __syncthreads();
    float products[kKeys / 8][4] = {};
    multiply_rows<kDim>(q, stage.keys, products);
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int entry = first + n * 8 + lane % 4 * 2 + i % 2;
        const int key = places[i / 2] + side - 1 - entry;
        if (key >= 0 && key < side) bias[i / 2][key] = products[n][i] * kLog2E;
      }
    }
  }
}

/// scores = scores * factor + bias, and minus infinity for keys at or beyond `valid`.
/// @param by_row, by_col biases of the two queries of this lane.
template <bool kPairs>
__device__ void add_bias(float factor, int valid, const short2* places,
                         const float* const (&by_row)[2], const float* const (&by_col)[2],
                         float (&scores)[kKeys / 8][4]) {
  const int column = static_cast<int>(threadIdx.x) % 4 * 2;
#pragma unroll
  for (int n = 0; n < kKeys / 8; ++n) {
    const int key = n * 8 + column;
    const short2 left = places[key];
    const short2 right = kPairs ? left : places[key + 1];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float2 bias;
      if constexpr (kPairs) {  // both keys stand in one row of an even number of columns
        bias = *reinterpret_cast<const float2*>(by_col[r] + left.y);
        const float row = by_row[r][left.x];
        bias.x += row;
        bias.y += row;
      } else {
        bias = {by_row[r][left.x] + by_col[r][left.y], by_row[r][right.x] + by_col[r][right.y]};
      }
      scores[n][2 * r] = key < valid ? fmaf(scores[n][2 * r], factor, bias.x) : -INFINITY;
      scores[n][2 * r + 1] =
          key + 1 < valid ? fmaf(scores[n][2 * r + 1], factor, bias.y) : -INFINITY;
    }
  }
}

template <int kDim>
struct Accumulator {
  float out[kDim / 8][4] = {};
  float maximum[2] = {-INFINITY, -INFINITY};
  float sum[2] = {};
};

/// Turns scores, in units of log2, into weights relative to the new maximum and rescales what was
/// summed before.
template <int kDim>
__device__ void update_softmax(float (&scores)[kKeys / 8][4], Accumulator<kDim>& acc) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float maximum = acc.maximum[r];
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
      maximum = fmaxf(maximum, fmaxf(scores[n][2 * r], scores[n][2 * r + 1]));
    }
    maximum = quad_max(maximum);
    const float rescale = ptx::exp2_fast(acc.maximum[r] - maximum);
    acc.maximum[r] = maximum;
    acc.sum[r] *= rescale;
#pragma unroll
    for (int n = 0; n < kDim / 8; ++n) {
      acc.out[n][2 * r] *= rescale;
      acc.out[n][2 * r + 1] *= rescale;
    }
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int i = 2 * r; i < 2 * r + 2; ++i) {
        scores[n][i] = ptx::exp2_fast(scores[n][i] - maximum);
        acc.sum[r] += scores[n][i];
      }
    }
  }
}

/// acc.out[16 x kDim] += weights v of one warp.
template <int kDim>
__device__ void multiply_values(const float (&weights)[kKeys / 8][4], const Stage<kDim>& stage,
                                Accumulator<kDim>& acc) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int key = lane % 16;
  const int dim = lane / 16 * 8;
#pragma unroll
  for (int step = 0; step < kKeys / 16; ++step) {
    const float(&left)[4] = weights[2 * step];
    const float(&right)[4] = weights[2 * step + 1];
    const std::uint32_t p[4] = {pack_bf16(left[0], left[1]), pack_bf16(left[2], left[3]),
                                pack_bf16(right[0], right[1]), pack_bf16(right[2], right[3])};
#pragma unroll
    for (int pair = 0; pair < kDim / 16; ++pair) {
      std::uint32_t v[4];
      ptx::load_matrices_transposed(
          ptx::shared_address(&stage.values[step * 16 + key][pair * 16 + dim]), v);
      ptx::multiply_add(acc.out[2 * pair], p, v[0], v[1]);
      ptx::multiply_add(acc.out[2 * pair + 1], p, v[2], v[3]);
    }
  }
}

template <int kDim>
__device__ void store_rows(const Block& b, const int (&rows)[2], const Accumulator<kDim>& acc) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const float inverse = 1.0f / quad_sum(acc.sum[r]);
    if (rows[r] < 0) continue;
    __nv_bfloat16* const out =
        b.work.out + rows[r] * b.channels() + b.head * b.work.head_dim + lane % 4 * 2;
#pragma unroll
    for (int n = 0; n < kDim / 8; ++n) {
      if (n * 8 >= b.work.head_dim) continue;
      *reinterpret_cast<std::uint32_t*>(out + n * 8) =
          pack_bf16(acc.out[n][2 * r] * inverse, acc.out[n][2 * r + 1] * inverse);
    }
  }
}

/// Zeros in place of the queries of a block.
__device__ void clear_rows(const Block& b) {
  const int pieces = b.work.head_dim / 8;
  for (int i = static_cast<int>(threadIdx.x); i < kQueries * pieces; i += kThreads) {
    const int query = b.first_query + i / pieces;
    if (query >= b.window.num_queries()) return;
    const int2 place = b.window.place_of_query(query);
    const std::int64_t row = b.window.row_of(b.work, place.y, place.x);
    auto* const to = b.work.out + row * b.channels() + b.head * b.work.head_dim;
    reinterpret_cast<uint4*>(to)[i % pieces] = uint4{};
  }
}

/// Biases of the queries of the block. @param low, high places of its first and last query.
template <int kDim>
__device__ void compute_biases(const Block& b, const std::uint32_t (&q)[kDim / 16][4],
                               const int2 (&places)[2], float* const (&by_row)[2],
                               float* const (&by_col)[2], Stage<kDim>& stage) {
  const GridWork& w = b.work;
  const int last = min(b.first_query + kQueries, b.window.num_queries()) - 1;
  const int low_y = b.window.place_of_query(b.first_query).y;
  const int high_y = b.window.place_of_query(last).y;
  compute_bias<kDim>(b, q, w.rel_pos_h, w.side_h, low_y, high_y, {places[0].y, places[1].y}, by_row,
                     stage);
  compute_bias<kDim>(b, q, w.rel_pos_w, w.side_w, 0, b.window.cols - 1, {places[0].x, places[1].x},
                     by_col, stage);
  __syncthreads();
}

template <int kDim, bool kPairs>
__global__ void __launch_bounds__(kThreads) grid_attention_kernel(GridWork w, int tiles) {
  extern __shared__ __align__(16) std::byte shared[];
  auto* const stages = reinterpret_cast<Stage<kDim>*>(shared);
  auto& key_places = *reinterpret_cast<KeyPlaces*>(stages + kStages);
  auto* const by_row_all = reinterpret_cast<float*>(&key_places + 1);
  const int stride_h = bias_stride(w.side_h, kRowBanks);
  const int stride_w = bias_stride(w.side_w, kColBanks);
  float* const by_col_all = by_row_all + kQueries * stride_h;
  wait_for_predecessor();

  const int number = static_cast<int>(blockIdx.x) / tiles;
  const Block b{w, make_window(w, number), static_cast<int>(blockIdx.y),
                (static_cast<int>(blockIdx.x) - number * tiles) * kQueries};
  if (b.first_query >= b.window.num_queries()) return;
  if (number / (w.windows_y * w.windows_x) >= live_rows(w.live, w.images)) return clear_rows(b);

  // The two queries of this lane.
  const int in_block =
      static_cast<int>(threadIdx.x) / 32 * 16 + static_cast<int>(threadIdx.x) % 32 / 4;
  int rows[2];
  int2 places[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int query = b.first_query + in_block + 8 * r;
    places[r] = b.window.place_of_query(min(query, b.window.num_queries() - 1));
    rows[r] = query < b.window.num_queries() ? b.window.row_of(w, places[r].y, places[r].x) : -1;
  }
  std::uint32_t q[kDim / 16][4];
  load_queries<kDim>(b, rows, q);
  float* const by_row[2] = {by_row_all + in_block * stride_h,
                            by_row_all + (in_block + 8) * stride_h};
  float* const by_col[2] = {by_col_all + in_block * stride_w,
                            by_col_all + (in_block + 8) * stride_w};
  compute_biases<kDim>(b, q, places, by_row, by_col, stages[0]);
#pragma unroll
  for (int i = 0; i < kDim / 16 * 4; ++i) {
    q[i / 4][i % 4] = (q[i / 4][i % 4] & w.query_keep) ^ w.query_flip;
  }

  const int num_keys = w.side_h * w.side_w;
  const int num_steps = (num_keys + kKeys - 1) / kKeys;
  fetch<kDim>(b, 0, stages[0], key_places.at[0]);
  ptx::commit_copies();
  Accumulator<kDim> acc;
  for (int step = 0; step < num_steps; ++step) {
    if (step + 1 < num_steps) {
      fetch<kDim>(b, (step + 1) * kKeys, stages[(step + 1) % kStages],
                  key_places.at[(step + 1) % kStages]);
    }
    ptx::commit_copies();
    ptx::wait_copies<1>();
    __syncthreads();
    const Stage<kDim>& stage = stages[step % kStages];
    float scores[kKeys / 8][4] = {};
    multiply_rows<kDim>(q, stage.keys, scores);
    add_bias<kPairs>(w.scale * kLog2E, num_keys - step * kKeys, key_places.at[step % kStages],
                     {by_row[0], by_row[1]}, {by_col[0], by_col[1]}, scores);
    update_softmax<kDim>(scores, acc);
    multiply_values<kDim>(scores, stage, acc);
    __syncthreads();  // everyone has read this stage before it is filled again
  }
  store_rows<kDim>(b, rows, acc);
}

std::size_t shared_bytes(const GridWork& w, std::size_t stage_bytes) {
  const int strides = bias_stride(w.side_h, kRowBanks) + bias_stride(w.side_w, kColBanks);
  return kStages * stage_bytes + sizeof(KeyPlaces) +
         static_cast<std::size_t>(kQueries * strides) * sizeof(float);
}

template <int kDim, bool kPairs>
void launch_kernel(CudaStream& stream, const GridWork& w) {
  constexpr std::size_t kMostBytes = 227 * 1024;  // of a block, on Hopper
  const std::size_t bytes = shared_bytes(w, sizeof(Stage<kDim>));
  FOVEA_CHECK(bytes <= kMostBytes, kUnsupported, "grid_attention: windows of ", w.side_h, "x",
              w.side_w, " need ", bytes, " bytes of shared memory per block, a GPU has ",
              kMostBytes);
  FOVEA_CUDA_CHECK(cudaFuncSetAttribute(&grid_attention_kernel<kDim, kPairs>,
                                        cudaFuncAttributeMaxDynamicSharedMemorySize,
                                        static_cast<int>(bytes)));
  const int tiles = (w.side_h * w.side_w + kQueries - 1) / kQueries;
  const int blocks = w.images * w.windows_y * w.windows_x * tiles;
  launch(stream, &grid_attention_kernel<kDim, kPairs>,
         dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(w.num_heads)), dim3(kThreads),
         bytes, w, tiles);
}

template <int kDim>
void launch_dim(CudaStream& stream, const GridWork& w) {
  w.side_w % 2 == 0 ? launch_kernel<kDim, true>(stream, w) : launch_kernel<kDim, false>(stream, w);
}

GridWork make_work(const ops::GridAttentionArgs& args) {
  const auto side = [&](std::int64_t whole) {
    return static_cast<int>(args.window > 0 ? args.window : whole);
  };
  GridWork work{.qkv = args.qkv.as<__nv_bfloat16>(),
                .pad_qkv = args.pad_qkv.as<float>(),
                .rel_pos_h = args.rel_pos_h.as<float>(),
                .rel_pos_w = args.rel_pos_w.as<float>(),
                .live = args.images.count,
                .images = static_cast<int>(args.qkv.shape[0] / (args.height * args.width)),
                .height = static_cast<int>(args.height),
                .width = static_cast<int>(args.width),
                .side_h = side(args.height),
                .side_w = side(args.width),
                .windows_y = 0,
                .windows_x = 0,
                .num_heads = static_cast<int>(args.num_heads),
                .head_dim = static_cast<int>(args.head_dim),
                .scale = std::abs(args.scale),
                .out = args.out.as<__nv_bfloat16>()};
  work.windows_y = (work.height + work.side_h - 1) / work.side_h;
  work.windows_x = (work.width + work.side_w - 1) / work.side_w;
  if (args.scale < 0.0f) work.query_flip = kBf16SignBits;
  if (args.scale == 0.0f) work.query_keep = 0;
  return work;
}

void check(const ops::GridAttentionArgs& args) {
  FOVEA_CHECK(args.head_dim <= kMaxAttentionHeadDim, kUnsupported,
              "grid_attention: head_dim must be at most ", kMaxAttentionHeadDim, " on a GPU, got ",
              args.head_dim);
  constexpr std::int64_t kMostSide = 1024;
  FOVEA_CHECK(args.window <= kMostSide && args.height <= kMostSide && args.width <= kMostSide,
              kUnsupported, "grid_attention: sides must be at most ", kMostSide,
              " on a GPU, got a grid of ", args.height, "x", args.width, " and window ",
              args.window);
  FOVEA_CHECK(args.qkv.shape[0] <= INT32_MAX / 4, kUnsupported,
              "grid_attention: ", args.qkv.shape[0], " rows are too many for a GPU");
}

}  // namespace

void launch_grid_attention_mma(CudaStream& stream, const GridWork& work) {
  const DeviceGuard guard(stream.device_index());
  switch ((work.head_dim + 15) / 16) {
    case 1: return launch_dim<16>(stream, work);
    case 2: return launch_dim<32>(stream, work);
    case 3: return launch_dim<48>(stream, work);
    case 4: return launch_dim<64>(stream, work);
    case 5: return launch_dim<80>(stream, work);
    case 6: return launch_dim<96>(stream, work);
    case 7: return launch_dim<112>(stream, work);
    default: return launch_dim<128>(stream, work);
  }
}

std::size_t CudaKernels::grid_attention_workspace(const ops::GridAttentionArgs&) const { return 0; }

void CudaKernels::grid_attention(Stream& stream, const ops::GridAttentionArgs& args) const {
  check(args);
  launch_grid_attention_mma(static_cast<CudaStream&>(stream), make_work(args));
}

}  // namespace fovea::cuda
