// Attention with decomposed relative positions, with the tensor-core instructions of one warp.
//
// A CTA of four warps computes 64 queries of one head in one window; a warp owns 16 of them. Only
// tokens of the image are queries. Tokens that overhang it are keys like any other, with the k and
// v of a token of zeros. The steps over blocks of 64 keys are those of attention/mma.cu, with a
// bias:
//   s_j = (scale q . k_j + q . rel_pos_h[..] + q . rel_pos_w[..]) log2 e
// Before them the CTA multiplies its queries with the relative positions they can meet, also on
// the tensor cores, and keeps the bias of each query for every row and every column of keys in
// shared memory, in f32: side_h + side_w numbers instead of side_h * side_w. Relative positions and
// padded tokens are rounded to bf16, which is how checkpoints store them. Biases and scores stay
// f32, the weights are rounded to bf16 for the second product, and the result once.
//
// CTAs of images that are not live write zeros to the rows they would have computed.
// Source: docs/reference/deepseek_ocr.md, "Windowed attention" and "Relative positions".
#include "core/check.h"
#include "ops/cuda/attention/softmax_mma.cuh"
#include "ops/cuda/common/bf16.cuh"
#include "ops/cuda/common/lanes.cuh"
#include "ops/cuda/common/launch.cuh"
#include "ops/cuda/common/packed_heads.h"
#include "ops/cuda/grid_attention/grid_attention.h"
#include "ops/cuda/grid_attention/mma_biases.cuh"
#include "ops/cuda/grid_attention/mma_tile.cuh"
#include "ops/cuda/ptx/ptx.cuh"

namespace fovea::cuda {

namespace grid_mma {

namespace {

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

/// Zeros in place of the queries of a CTA.
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

/// Visits all keys of the window. The first step has been fetched.
template <int kDim, bool kPairs>
__device__ void attend(const Block& b, const std::uint32_t (&q)[kDim / 16][4], const Axis& y,
                       const Axis& x, Stage<kDim>* stages, KeyPlaces& key_places,
                       SoftmaxSums<kDim>& acc) {
  const GridWork& w = b.work;
  const int num_keys = w.side_h * w.side_w;
  const int num_steps = (num_keys + kKeys - 1) / kKeys;
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
}

template <int kDim, bool kPairs>
__global__ void __launch_bounds__(kThreads) grid_attention_kernel(GridWork w, int tiles) {
  extern __shared__ __align__(16) std::byte shared[];
  auto* const stages = reinterpret_cast<Stage<kDim>*>(shared);
  auto& key_places = *reinterpret_cast<KeyPlaces*>(stages + kStages);
  auto* const by_row = reinterpret_cast<float*>(&key_places + 1);
  float* const by_col = by_row + kQueries * bias_stride(w.side_h, kRowBanks);
  wait_for_predecessor();

  const int number = static_cast<int>(blockIdx.x) / tiles;
  const Block b{w, GridColumns(w.side_w), make_grid_window(w, number), static_cast<int>(blockIdx.y),
                (static_cast<int>(blockIdx.x) - number * tiles) * kQueries};
  if (b.first_query >= b.window.num_queries()) return;
  if (number / (w.windows_y * w.windows_x) >= live_rows(w.live, w.images)) return clear_rows(b);

  const LaneQueries own(b);
  std::uint32_t q[kDim / 16][4];
  load_queries<kDim>(b, own.rows, q);
  // The first keys and values are on their way while the biases are computed.
  fetch<kDim>(b, 0, stages[0], key_places.at[0]);
  ptx::commit_copies();
  const Axis y = make_row_axis(b, own, by_row);
  const Axis x = make_column_axis(b, own, by_col);
  compute_biases<kDim>(y, x, w.head_dim, q, stages[1]);
#pragma unroll
  for (int i = 0; i < kDim / 16 * 4; ++i) {
    q[i / 4][i % 4] = (q[i / 4][i % 4] & w.query_keep) ^ w.query_flip;
  }
  SoftmaxSums<kDim> acc;
  attend<kDim, kPairs>(b, q, y, x, stages, key_places, acc);
  store_rows<kDim>(b, own.rows, acc);
}

std::size_t shared_bytes(const GridWork& w, std::size_t stage_bytes) {
  const int strides = bias_stride(w.side_h, kRowBanks) + bias_stride(w.side_w, kColBanks);
  return kStages * stage_bytes + sizeof(KeyPlaces) +
         static_cast<std::size_t>(kQueries * strides) * sizeof(float);
}

template <int kDim, bool kPairs>
void launch_kernel(CudaStream& stream, const GridWork& w) {
  const std::size_t bytes = shared_bytes(w, sizeof(Stage<kDim>));
  const std::size_t most = stream.traits().shared_bytes;
  FOVEA_CHECK(bytes <= most, kUnsupported, "grid_attention: windows of ", w.side_h, "x", w.side_w,
              " need ", bytes, " bytes of shared memory per block, this GPU has ", most);
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

}  // namespace grid_mma

void launch_grid_attention_mma(CudaStream& stream, const GridWork& work) {
  const DeviceGuard guard(stream.device_index());
  PaddedHeadDims::choose(work.head_dim, [&](auto dim) { grid_mma::launch_dim<dim>(stream, work); });
}

}  // namespace fovea::cuda
