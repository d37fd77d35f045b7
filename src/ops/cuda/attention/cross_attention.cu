// Attention between two lists of rows: one warp for a head of a query, grid-stride. Lanes own pairs
// of dims, so a key is read with one coalesced access of a warp per 64 dims; its score is a sum
// over the lanes. Keys come one after the other with the running maximum and sum of softmax in
// registers: sequences have few keys where queries are many (pooling), and few queries where keys
// are many (resamplers).
// Traffic: q and out once, k and v of a sequence once for each of its queries, from L2.
#include "core/check.h"
#include "ops/cuda/attention/attention.h"
#include "ops/cuda/common/bf16.cuh"
#include "ops/cuda/common/lanes.cuh"
#include "ops/cuda/common/launch.cuh"
#include "ops/cuda/common/operands.h"
#include "ops/cuda/ptx/ptx.cuh"

namespace fovea::cuda {

namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarp;
constexpr int kMaxHeadDim = 128;
constexpr int kLanePairs = kMaxHeadDim / 2 / kWarp;  // of a lane, at most

struct CrossWork {
  const Bf16Pair* q;
  const Bf16Pair* kv;
  const std::int32_t* cu_queries;
  const std::int32_t* cu_keys;
  int max_seqs;
  const std::int32_t* live_seqs;
  int heads;
  int head_pairs;     ///< of dims
  float scale_log2e;  ///< scores are powers of 2
  Bf16Pair* out;
};

/// The sequence of a query: the last that begins at or before it.
__device__ int sequence_of(const CrossWork& w, int seqs, std::int64_t query) {
  int low = 0;
  int high = seqs;  // the answer is in [low, high)
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    if (w.cu_queries[middle] <= query) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

__device__ float sum_of_lanes(float value) {
#pragma unroll
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(kAllLanes, value, offset);
  }
  return value;
}

/// Pairs of the calling lane; zeros beyond the head.
__device__ void load_pairs(const Bf16Pair* from, int head_pairs, float2 (&values)[kLanePairs]) {
#pragma unroll
  for (int i = 0; i < kLanePairs; ++i) {
    const int pair = lane_index() + i * kWarp;
    values[i] = pair < head_pairs ? unpack_bf16(from[pair]) : float2{0.0f, 0.0f};
  }
}

/// One head of one query, for a warp.
__device__ void attend(const CrossWork& w, int seq, std::int64_t query, int head) {
  const std::int64_t width = std::int64_t{w.heads} * w.head_pairs;
  float2 q[kLanePairs];
  load_pairs(w.q + query * width + std::int64_t{head} * w.head_pairs, w.head_pairs, q);
  float2 sum[kLanePairs] = {};
  float largest = -INFINITY;
  float total = 0.0f;
  const int end = w.cu_keys[seq + 1];
  for (int key = w.cu_keys[seq]; key < end; ++key) {
    const Bf16Pair* const k = w.kv + std::int64_t{key} * 2 * width + head * w.head_pairs;
    float2 values[kLanePairs];
    load_pairs(k, w.head_pairs, values);
    float score = 0.0f;
#pragma unroll
    for (int i = 0; i < kLanePairs; ++i) {
      score = fmaf(q[i].x, values[i].x, fmaf(q[i].y, values[i].y, score));
    }
    score = sum_of_lanes(score) * w.scale_log2e;
    const float most = fmaxf(largest, score);
    const float shrink = ptx::exp2_fast(largest - most);  // 0 for the first key
    const float weight = ptx::exp2_fast(score - most);
    total = fmaf(total, shrink, weight);
    largest = most;
    load_pairs(k + width, w.head_pairs, values);
#pragma unroll
    for (int i = 0; i < kLanePairs; ++i) {
      sum[i].x = fmaf(sum[i].x, shrink, weight * values[i].x);
      sum[i].y = fmaf(sum[i].y, shrink, weight * values[i].y);
    }
  }
  const float inverse = total > 0.0f || isnan(total) ? 1.0f / total : 0.0f;
  Bf16Pair* const out = w.out + query * width + std::int64_t{head} * w.head_pairs;
#pragma unroll
  for (int i = 0; i < kLanePairs; ++i) {
    const int pair = lane_index() + i * kWarp;
    if (pair < w.head_pairs) out[pair] = pack_bf16(sum[i].x * inverse, sum[i].y * inverse);
  }
}

__global__ void __launch_bounds__(kThreads) cross_attention_kernel(CrossWork w) {
  const int seqs = static_cast<int>(live_rows(w.live_seqs, w.max_seqs));
  const std::int64_t first = seqs > 0 ? w.cu_queries[0] : 0;
  const std::int64_t last = seqs > 0 ? w.cu_queries[seqs] : 0;
  wait_for_predecessor();
  const std::int64_t tasks = (last - first) * w.heads;
  const std::int64_t step = std::int64_t{gridDim.x} * kWarps;
  for (std::int64_t task = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarp; task < tasks;
       task += step) {
    const std::int64_t query = first + task / w.heads;
    attend(w, sequence_of(w, seqs, query), query, static_cast<int>(task % w.heads));
  }
}

}  // namespace

void cross_attention(CudaStream& stream, const ops::CrossAttentionArgs& args, int num_sms) {
  constexpr const char* kOp = "cross_attention";
  constexpr float kLog2E = 1.4426950408889634f;
  check_bf16(kOp, "q", args.q);
  check_vectors(kOp, "q", args.q);
  check_vectors(kOp, "kv", args.kv);
  check_vectors(kOp, "out", args.out);
  FOVEA_CHECK(args.head_dim <= kMaxHeadDim, kUnsupported, kOp, ": head_dim must be at most ",
              kMaxHeadDim, " on a GPU, got ", args.head_dim);
  const CrossWork work{.q = args.q.as<Bf16Pair>(),
                       .kv = args.kv.as<Bf16Pair>(),
                       .cu_queries = args.cu_queries.as<std::int32_t>(),
                       .cu_keys = args.cu_keys.as<std::int32_t>(),
                       .max_seqs = static_cast<int>(args.cu_queries.shape[0] - 1),
                       .live_seqs = args.seqs.count,
                       .heads = static_cast<int>(args.num_heads),
                       .head_pairs = static_cast<int>(args.head_dim / 2),
                       .scale_log2e = args.scale * kLog2E,
                       .out = args.out.as<Bf16Pair>()};
  launch(stream, &cross_attention_kernel,
         grid_for(args.q.shape[0] * args.num_heads, kWarps, num_sms), dim3(kThreads), 0, work);
}

}  // namespace fovea::cuda
