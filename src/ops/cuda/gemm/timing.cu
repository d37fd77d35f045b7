// Measures GEMMs on the stream that will use them.
#include <algorithm>
#include <limits>

#include "fovea/error.h"
#include "fovea/tower/core/dtype.h"
#include "ops/cuda/common/bf16.cuh"
#include "ops/cuda/common/launch.cuh"
#include "ops/cuda/gemm/timing.h"
#include "ops/cuda/rowwise/quantize.cuh"

namespace fovea::cuda {

namespace {

constexpr int kBlock = 256;
constexpr int kFillBlocks = 1024;
constexpr int kBetweenBlocks = 128;
constexpr std::int64_t kRotatedBytes = std::int64_t{128} << 20;  // of weights; H100 has 50 MB of L2
constexpr float kTargetMs = 0.25f;                               // of one recording
constexpr int kMinRuns = 3;
constexpr int kMaxRuns = 20;
constexpr int kReplays = 3;
constexpr float kLongestLoopMs = 8.0f;
constexpr std::int64_t kElementBytes = sizeof(__nv_bfloat16);

__device__ void store_rounded(__nv_bfloat16* to, float value) { *to = __float2bfloat16_rn(value); }
/// As quantization leaves it: close to the largest number.
__device__ void store_rounded(std::uint8_t* to, float value) {
  *to = static_cast<std::uint8_t>(pack_e4m3(2.0f * kMaxE4M3 * value, 0.0f));
}

/// Values in [-0.5, 0.5) from a hash of the position: all bits of the mantissa vary.
template <class Element>
__global__ void __launch_bounds__(kBlock) fill_random_kernel(Element* out, std::size_t count) {
  wait_for_predecessor();
  const std::size_t stride = std::size_t{gridDim.x} * kBlock;
  for (std::size_t i = std::size_t{blockIdx.x} * kBlock + threadIdx.x; i < count; i += stride) {
    auto bits = static_cast<std::uint32_t>(i) * 2654435761u;
    bits = (bits ^ (bits >> 15)) * 2246822519u;
    bits ^= bits >> 13;
    store_rounded(out + i, static_cast<float>(bits) * 0x1p-32f - 0.5f);
  }
}

/// What a tower does between two GEMMs: a kernel of ours, which lets the next one start up.
__global__ void __launch_bounds__(kBlock) step_between_kernel() { wait_for_predecessor(); }

struct MemoryTraits {
  using Handle = std::byte*;
  static void destroy(Handle handle) noexcept { (void)cudaFree(handle); }
};
using Memory = UniqueHandle<MemoryTraits>;

/// Random operands, or nothing if memory is short.
template <class Element = __nv_bfloat16>
Memory random_operand(CudaStream& stream, std::int64_t count) {
  std::byte* data = nullptr;
  const auto elements = static_cast<std::size_t>(count);
  if (cudaMalloc(&data, elements * sizeof(Element)) != cudaSuccess) {
    (void)cudaGetLastError();
    return {};
  }
  Memory memory(data);
  launch(stream, &fill_random_kernel<Element>, dim3(kFillBlocks), dim3(kBlock), 0,
         reinterpret_cast<Element*>(data), elements);
  return memory;
}
/// The same of E4M3 or bf16.
Memory random_operand(CudaStream& stream, std::int64_t count, bool is_fp8) {
  return is_fp8 ? random_operand<std::uint8_t>(stream, count) : random_operand(stream, count);
}

UniqueEvent make_event() {
  cudaEvent_t event = nullptr;
  FOVEA_CUDA_CHECK(cudaEventCreate(&event));
  return UniqueEvent(event);
}

}  // namespace

struct GemmStopwatch::Operands {
  std::int64_t copies;  // of weights
  Memory weights, x, out, bias;
  Memory cu_seqlens;  // of one sequence of all rows
  Memory live;        // one count
  Memory scales;      // of a row or a column, for whatever asks
  PackedHeads heads;
  UniqueEvent begin = make_event();
  UniqueEvent end = make_event();
};

GemmStopwatch::GemmStopwatch(CudaStream& stream, const Gemm& gemm) : stream_(stream), gemm_(gemm) {
  const DeviceGuard guard(stream.device_index());
  const std::int64_t weight_size = gemm.in_features * gemm.out_features;
  operands_ = std::make_unique<Operands>();
  Operands& o = *operands_;
  const bool is_fp8 = gemm.format != GemmFormat::kBf16;
  o.copies = std::max<std::int64_t>(1, kRotatedBytes / (weight_size * kElementBytes));
  o.weights = random_operand(stream, weight_size * o.copies, is_fp8);
  o.x = random_operand(stream, gemm.rows * gemm.in_features, is_fp8);
  o.out = random_operand(stream, gemm.rows * gemm.out_stride);
  o.bias = random_operand(stream, gemm.out_features);
  if (gemm.heads != nullptr) {  // the op that measures has not begun to use its workspace
    const std::int32_t ends[] = {0, static_cast<std::int32_t>(gemm.rows)};
    o.cu_seqlens = random_operand(stream, sizeof(ends) / kElementBytes);
    if (o.cu_seqlens.get()) {
      FOVEA_CUDA_CHECK(cudaMemcpyAsync(o.cu_seqlens.get(), ends, sizeof(ends),
                                       cudaMemcpyHostToDevice, stream.handle()));
    }
    o.heads = *gemm.heads;
    o.heads.cu_seqlens = reinterpret_cast<const std::int32_t*>(o.cu_seqlens.get());
    o.heads.live_seqs = nullptr;
    o.heads.max_seqs = 1;
    gemm_.heads = &o.heads;
  }
  if (is_fp8) place_scales();
  FOVEA_CUDA_CHECK(cudaStreamSynchronize(stream.handle()));
  gemm_.x = o.x.get();
  gemm_.bias = gemm.bias != nullptr ? o.bias.get() : nullptr;
  // In place, as towers use it; the values grow a little per run, never to infinity.
  gemm_.residual = gemm.residual != nullptr ? o.out.get() : nullptr;
  gemm_.out = o.out.get();
  if (gemm.live != nullptr) place_live();
}

void GemmStopwatch::place_live() {
  operands_->live = random_operand(stream_, sizeof(std::int32_t) / kElementBytes);
  gemm_.live = reinterpret_cast<const std::int32_t*>(operands_->live.get());
  if (gemm_.live == nullptr) return;
  const auto rows = static_cast<std::int32_t>(gemm_.rows);
  FOVEA_CUDA_CHECK(cudaMemcpyAsync(operands_->live.get(), &rows, sizeof(rows),
                                   cudaMemcpyHostToDevice, stream_.handle()));
  FOVEA_CUDA_CHECK(cudaStreamSynchronize(stream_.handle()));
}

void GemmStopwatch::place_scales() {
  constexpr int kByte = 0x3a;  // of 7.1e-4, which keeps results near 1
  const std::int64_t count = std::max(gemm_.rows, gemm_.out_features);
  const std::int64_t bytes = count * static_cast<std::int64_t>(sizeof(float));
  operands_->scales = random_operand(stream_, 2 * bytes / kElementBytes);
  if (!operands_->scales.get()) return;
  FOVEA_CUDA_CHECK(cudaMemsetAsync(operands_->scales.get(), kByte, static_cast<std::size_t>(bytes),
                                   stream_.handle()));
  auto* const scales = reinterpret_cast<float*>(operands_->scales.get());
  gemm_.scales.x = scales;
  gemm_.scales.weight = scales;
  gemm_.scales.x_norm = scales;
  gemm_.scales.out = scales + count;
}

GemmStopwatch::~GemmStopwatch() = default;

bool GemmStopwatch::is_ready() const noexcept {
  const Operands& o = *operands_;
  return o.weights.get() && o.x.get() && o.out.get() && o.bias.get() &&
         (gemm_.heads == nullptr || o.cu_seqlens.get()) &&
         (gemm_.format == GemmFormat::kBf16 || o.scales.get());
}

std::unique_ptr<RecordedGraph> GemmStopwatch::record(const Way& way, int runs) {
  const std::int64_t element_bytes = gemm_.format == GemmFormat::kBf16 ? kElementBytes : 1;
  const std::int64_t weight_bytes = gemm_.in_features * gemm_.out_features * element_bytes;
  return stream_.capture([&] {
    for (int i = 0; i < runs; ++i) {
      gemm_.weight = operands_->weights.get() + i % operands_->copies * weight_bytes;
      way(gemm_);
      launch(stream_, &step_between_kernel, dim3(kBetweenBlocks), dim3(kBlock), 0);
    }
  });
}

float GemmStopwatch::replay_ms(const RecordedGraph& graph, int replays) {
  const Operands& o = *operands_;
  FOVEA_CUDA_CHECK(cudaEventRecord(o.begin.get(), stream_.handle()));
  for (int i = 0; i < replays; ++i) stream_.replay(graph);
  FOVEA_CUDA_CHECK(cudaEventRecord(o.end.get(), stream_.handle()));
  FOVEA_CUDA_CHECK(cudaEventSynchronize(o.end.get()));
  float ms = 0.0f;
  FOVEA_CUDA_CHECK(cudaEventElapsedTime(&ms, o.begin.get(), o.end.get()));
  return ms;
}

float GemmStopwatch::glance(const Way& way, float give_up_ms) {
  try {
    const auto few = record(way, kMinRuns);
    const float first_ms = std::min(replay_ms(*few, 1), replay_ms(*few, 1)) / kMinRuns;
    if (first_ms > 1.5f * give_up_ms) return first_ms;
    const int runs =
        static_cast<int>(std::clamp(kTargetMs / first_ms, float{kMinRuns}, float{kMaxRuns}));
    const auto graph = record(way, runs);
    float shortest = std::numeric_limits<float>::infinity();
    for (int i = 0; i < kReplays; ++i) shortest = std::min(shortest, replay_ms(*graph, 1));
    return shortest / static_cast<float>(runs);
  } catch (const Error&) {
    return std::numeric_limits<float>::infinity();
  }
}

float GemmStopwatch::measure(const RecordedGraph& recorded) {
  const float first_ms = replay_ms(recorded, 1);
  // Short GEMMs do not reach the power limit anyway.
  const float loop_ms = std::min(kLongestLoopMs, kReplays * first_ms);
  const int replays = std::max(1, static_cast<int>(loop_ms / first_ms));
  return replay_ms(recorded, replays) / static_cast<float>(replays * kRunsOfLoop);
}

}  // namespace fovea::cuda
