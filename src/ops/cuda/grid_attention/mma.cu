// Attention with decomposed relative positions, with the tensor-core instructions of one warp.
//
// A block of four warps computes 64 queries of one head in one window; a warp owns 16 of them. Only
// tokens of the image are queries; tokens that overhang it are keys like any other, with what a
// token of zeros gives. The steps over blocks of 64 keys are those of attention/mma.cu, with a
// bias:
//   s_j = (scale q . k_j + q . rel_pos_h[..] + q . rel_pos_w[..]) log2 e
// Before them the block multiplies its queries with the relative positions they can meet, also on
// the matrix unit, and keeps what each query adds to every row and every column of keys in shared
// memory, in f32: side_h + side_w numbers instead of side_h * side_w. Relative positions and padded
// tokens are rounded to bf16 for the products, which is what the checkpoint holds; biases and
// scores stay f32, the weights are rounded to bf16 for the second product, and the result once.
//
// Blocks of images that are not live write zeros to the rows they would have computed.
#include "core/check.h"
#include "ops/cuda/attention/softmax_mma.cuh"
#include "ops/cuda/attention/tiles.cuh"
#include "ops/cuda/common/bf16.cuh"
#include "ops/cuda/common/head_dims.h"
#include "ops/cuda/common/lanes.cuh"
#include "ops/cuda/common/launch.cuh"
#include "ops/cuda/grid_attention/grid_attention.h"
#include "ops/cuda/grid_attention/window.cuh"
#include "ops/cuda/ptx/ptx.cuh"

namespace fovea::cuda {

namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarp;
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

/// Row and column of a key, for each key of a step.
struct KeyPlaces {
  short2 at[kStages][kKeys];
};

/// What every thread of a block knows.
struct Block {
  const GridWork& work;
  GridColumns columns;
  GridWindow window;
  int head;
  int first_query;

  [[nodiscard]] __device__ std::int64_t channels() const {
    return std::int64_t{work.num_heads} * work.head_dim;
  }
  /// Part 0 (q), 1 (k) or 2 (v) of a row's head.
  [[nodiscard]] __device__ const __nv_bfloat16* row(int row, int part) const {
    return reinterpret_cast<const __nv_bfloat16*>(work.qkv) +
           (std::int64_t{row} * 3 + part) * channels() + head * work.head_dim;
  }
  [[nodiscard]] __device__ __nv_bfloat16* out_row(int row) const {
    return reinterpret_cast<__nv_bfloat16*>(work.out) + row * channels() + head * work.head_dim;
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
#pragma unroll
  for (int i = static_cast<int>(threadIdx.x); i < kKeys * kPieces; i += kThreads) {
    const int row = i / kPieces;
    const int dim = i % kPieces * 8;
    const int key = first + row;
    const int2 place = b.columns.split(key);
    const int token = key < num_keys ? b.window.row_of(w, place.y, place.x) : -1;
    if (dim == 0) {
      places[row] =
          make_short2(static_cast<short>(min(place.y, w.side_h - 1)), static_cast<short>(place.x));
    }
    if (key < num_keys && token < 0 && dim < w.head_dim) {
      store_rounded(b.pad(1) + dim, &stage.keys[row][dim]);
      store_rounded(b.pad(2) + dim, &stage.values[row][dim]);
      continue;
    }
    const bool valid = token >= 0 && dim < w.head_dim;
    const __nv_bfloat16* const from = b.row(max(token, b.window.first_row), 1) + (valid ? dim : 0);
    ptx::copy_async(ptx::shared_address(&stage.keys[row][dim]), from, valid);
    ptx::copy_async(ptx::shared_address(&stage.values[row][dim]), from + b.channels(), valid);
  }
}

/// The matrix-unit operand of the 16 queries of this warp; lane l has rows l / 4 and l / 4 + 8.
template <int kDim>
__device__ void load_queries(const Block& b, const int (&rows)[2],
                             std::uint32_t (&q)[kDim / 16][4]) {
  const int lane = lane_index();
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
  const int lane = lane_index();
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

/// Relative positions along one axis, and where the queries of a block and of a lane stand on it.
struct Axis {
  const float* table;  ///< [2 * side - 1, head_dim]
  int side;
  int low;  ///< place of the first query of the block
  int high;
  int places[2];   ///< of this lane's queries
  float* bias[2];  ///< of this lane's queries, [side]

  /// Entries [low, end()) can be met.
  [[nodiscard]] __device__ int end() const { return high + side; }
};

/// Rounds entries [first, first + kKeys) of a table to bf16, zeros beyond those that can be met.
template <int kDim>
__device__ void load_entries(const Axis& axis, int head_dim, int first,
                             __nv_bfloat16 (&rows)[kKeys][kDim + 8]) {
  constexpr int kPieces = kDim / 8;
#pragma unroll
  for (int i = static_cast<int>(threadIdx.x); i < kKeys * kPieces; i += kThreads) {
    const int row = i / kPieces;
    const int dim = i % kPieces * 8;
    const bool exists = first + row < axis.end() && dim < head_dim;
    float values[8];  // loaded without a condition, so that all loads are under way at once
    load_floats<8>(axis.table + (exists ? (first + row) * head_dim + dim : 0), values);
#pragma unroll
    for (float& value : values) value = exists ? value : 0.0f;
    store_floats<8>(&rows[row][dim], values);
  }
}

/// bias[k] = log2 e * q . table[p - k + side - 1] for the keys k that meet the entries in `rows`.
template <int kDim>
__device__ void multiply_entries(const Axis& axis, const std::uint32_t (&q)[kDim / 16][4],
                                 int first, const __nv_bfloat16 (&rows)[kKeys][kDim + 8]) {
  const int lane = lane_index();
  float products[kKeys / 8][4] = {};
  multiply_rows<kDim>(q, rows, products);
#pragma unroll
  for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int entry = first + n * 8 + lane % 4 * 2 + i % 2;
      const int key = axis.places[i / 2] + axis.side - 1 - entry;
      if (key >= 0 && key < axis.side) axis.bias[i / 2][key] = products[n][i] * ptx::kLog2E;
    }
  }
}

/// What the queries of the block add to every row and column of keys. Uses `stage` in between.
template <int kDim>
__device__ void compute_biases(const Axis& y, const Axis& x, int head_dim,
                               const std::uint32_t (&q)[kDim / 16][4], Stage<kDim>& stage) {
  for (int done = 0; y.low + done < y.end() || x.low + done < x.end(); done += kKeys) {
    const bool has_y = y.low + done < y.end();
    const bool has_x = x.low + done < x.end();
    if (has_y) load_entries<kDim>(y, head_dim, y.low + done, stage.keys);
    if (has_x) load_entries<kDim>(x, head_dim, x.low + done, stage.values);
    __syncthreads();
    if (has_y) multiply_entries<kDim>(y, q, y.low + done, stage.keys);
    if (has_x) multiply_entries<kDim>(x, q, x.low + done, stage.values);
    __syncthreads();  // everyone has read the entries before the next ones come
  }
}

/// scores = scores * factor + bias, and minus infinity for keys at or beyond `valid`.
/// @param by_row, by_col biases of the two queries of this lane.
template <bool kPairs>
__device__ void add_bias(float factor, int valid, const short2* places, float* const (&by_row)[2],
                         float* const (&by_col)[2], float (&scores)[kKeys / 8][4]) {
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
__device__ void store_rows(const Block& b, const int (&rows)[2], const SoftmaxSums<kDim>& acc) {
  const int lane = lane_index();
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const float inverse = 1.0f / quad_sum(acc.sum[r]);
    if (rows[r] < 0) continue;
    __nv_bfloat16* const out = b.out_row(rows[r]) + lane % 4 * 2;
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
    auto* const to = b.out_row(b.window.row_of(b.work, place.y, place.x));
    reinterpret_cast<uint4*>(to)[i % pieces] = uint4{};
  }
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
  const Block b{w, GridColumns(w.side_w), make_grid_window(w, number), static_cast<int>(blockIdx.y),
                (static_cast<int>(blockIdx.x) - number * tiles) * kQueries};
  if (b.first_query >= b.window.num_queries()) return;
  if (number / (w.windows_y * w.windows_x) >= live_rows(w.live, w.images)) return clear_rows(b);

  // The two queries of this lane.
  const int in_block = static_cast<int>(threadIdx.x) / kWarp * 16 + lane_index() / 4;
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
  // The first keys and values are on their way while the biases are computed.
  fetch<kDim>(b, 0, stages[0], key_places.at[0]);
  ptx::commit_copies();
  const int last = min(b.first_query + kQueries, b.window.num_queries()) - 1;
  float* const by_row = by_row_all + in_block * stride_h;
  float* const by_col = by_col_all + in_block * stride_w;
  const Axis y{w.rel_pos_h,
               w.side_h,
               b.window.place_of_query(b.first_query).y,
               b.window.place_of_query(last).y,
               {places[0].y, places[1].y},
               {by_row, by_row + 8 * stride_h}};
  const Axis x{w.rel_pos_w,
               w.side_w,
               0,
               b.window.cols - 1,
               {places[0].x, places[1].x},
               {by_col, by_col + 8 * stride_w}};
  compute_biases<kDim>(y, x, w.head_dim, q, stages[1]);
#pragma unroll
  for (int i = 0; i < kDim / 16 * 4; ++i) {
    q[i / 4][i % 4] = (q[i / 4][i % 4] & w.query_keep) ^ w.query_flip;
  }

  const int num_keys = w.side_h * w.side_w;
  const int num_steps = (num_keys + kKeys - 1) / kKeys;
  SoftmaxSums<kDim> acc;
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
    add_bias<kPairs>(w.scale * ptx::kLog2E, num_keys - step * kKeys, key_places.at[step % kStages],
                     y.bias, x.bias, scores);
    update_softmax(1.0f, scores, acc);
    multiply_values(scores, stage.values, acc);
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
  const std::size_t bytes = shared_bytes(w, sizeof(Stage<kDim>));
  FOVEA_CHECK(bytes <= kMostSharedBytes, kUnsupported, "grid_attention: windows of ", w.side_h, "x",
              w.side_w, " need ", bytes, " bytes of shared memory per block, a GPU has ",
              kMostSharedBytes);
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

}  // namespace

void launch_grid_attention_mma(CudaStream& stream, const GridWork& work) {
  const DeviceGuard guard(stream.device_index());
  PaddedHeadDims::choose(work.head_dim, [&](auto dim) { launch_dim<dim>(stream, work); });
}

}  // namespace fovea::cuda
