// Lengths and offsets of packed sequences for cuDNN: one thread per sequence, and one per 16 bytes
// of the rows that nothing covers. Traffic: 16 bytes per sequence, and the rows.
#include "ops/cuda/attention/work.h"
#include "ops/cuda/common/launch.cuh"

namespace fovea::cuda {

namespace {

constexpr int kBlock = 256;

__global__ void __launch_bounds__(kBlock)
    attention_offsets_kernel(const AttentionWork w, const AttentionOffsets offsets) {
  wait_for_predecessor();
  const int live = static_cast<int>(live_rows(w.live_seqs, w.max_seqs));
  const int out_width = w.num_heads * w.head_dim;
  const std::int64_t thread = std::int64_t{blockIdx.x} * kBlock + threadIdx.x;
  const std::int64_t num_threads = std::int64_t{gridDim.x} * kBlock;
  for (std::int64_t s = thread; s <= offsets.num_seqs; s += num_threads) {
    const int first = w.cu_seqlens[min(static_cast<int>(s), live)];
    offsets.qkv[s] = first * 3 * out_width;
    offsets.out[s] = first * out_width;
    if (s < offsets.num_seqs) offsets.lengths[s] = s < live ? w.cu_seqlens[s + 1] - first : 0;
  }
  constexpr int kPieceElements = 8;  // 16 bytes; head_dim is a multiple of it
  const std::int64_t pieces = std::int64_t{w.rows} * out_width / kPieceElements;
  const std::int64_t covered = std::int64_t{w.cu_seqlens[live]} * out_width / kPieceElements;
  for (std::int64_t i = covered + thread; i < pieces; i += num_threads)
    reinterpret_cast<int4*>(w.out)[i] = int4{};
}

}  // namespace

void launch_attention_offsets(CudaStream& stream, const AttentionWork& work,
                              const AttentionOffsets& offsets, int num_sms) {
  constexpr int kRowsPerBlock = 64;  // few rows are uncovered
  launch(stream, &attention_offsets_kernel,
         grid_for(std::max(work.rows, offsets.num_seqs + 1), kRowsPerBlock, num_sms), dim3(kBlock),
         0, work, offsets);
}

}  // namespace fovea::cuda
