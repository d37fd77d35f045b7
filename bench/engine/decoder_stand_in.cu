#include "engine/decoder_stand_in.h"

#include <cudaTypedefs.h>
#include <cuda_bf16.h>
#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace fovea::bench {

namespace {

constexpr int kWarp = 32;
constexpr int kThreads = 256;  // a warp per row
constexpr int kVector = 8;     // elements that a lane loads at once
constexpr int kAhead = 4;      // of these loads in flight

struct GemvSize {
  int rows;
  int cols;
};
/// Queries, keys and values of grouped heads; output; gate and up; down.
constexpr GemvSize kLayer[] = {{6144, 4096}, {4096, 4096}, {24576, 4096}, {4096, 12288}};
constexpr int kLongest = 24576;

void check(cudaError_t status) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "decoder stand-in: %s\n", cudaGetErrorString(status));
  std::exit(1);
}

/// Calls a function of the driver as its interface has had it since CUDA 12.5.
template <class Function, class... Arguments>
void call(const char* name, Arguments... arguments) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  check(cudaGetDriverEntryPointByVersion(name, &function, 12050, cudaEnableDefault, &found));
  if (found == cudaDriverEntryPointSuccess &&
      reinterpret_cast<Function>(function)(arguments...) == CUDA_SUCCESS)
    return;
  std::fprintf(stderr, "decoder stand-in: %s failed\n", name);
  std::exit(1);
}

/// A green context of GPU 0.
CUgreenCtx green_context(CUdevResource sms) {
  CUdevResourceDesc description = nullptr;
  call<PFN_cuDevResourceGenerateDesc_v12040>("cuDevResourceGenerateDesc", &description, &sms, 1u);
  CUgreenCtx context = nullptr;
  call<PFN_cuGreenCtxCreate_v12040>("cuGreenCtxCreate", &context, description, 0,
                                    static_cast<unsigned>(CU_GREEN_CTX_DEFAULT_STREAM));
  return context;
}

__device__ float dot(uint4 a, uint4 b) {
  const auto* const x = reinterpret_cast<const __nv_bfloat162*>(&a);
  const auto* const y = reinterpret_cast<const __nv_bfloat162*>(&b);
  float sum = 0;
#pragma unroll
  for (int i = 0; i < kVector / 2; ++i) {
    const float2 p = __bfloat1622float2(x[i]);
    const float2 q = __bfloat1622float2(y[i]);
    sum = fmaf(p.x, q.x, fmaf(p.y, q.y, sum));
  }
  return sum;
}

/// y = W x. Columns are a multiple of kWarp * kVector * kAhead.
__global__ void __launch_bounds__(kThreads)
    gemv_kernel(const uint4* weight, const uint4* x, __nv_bfloat16* y, int cols) {
  const int row = static_cast<int>(blockIdx.x * (kThreads / kWarp) + threadIdx.x / kWarp);
  const int lane = static_cast<int>(threadIdx.x % kWarp);
  const int vectors = cols / kVector;
  const uint4* const w = weight + static_cast<std::int64_t>(row) * vectors;
  float sum = 0;
  for (int first = lane; first < vectors; first += kWarp * kAhead) {
    uint4 loaded[kAhead];
#pragma unroll
    for (int i = 0; i < kAhead; ++i) loaded[i] = __ldcs(w + first + i * kWarp);
#pragma unroll
    for (int i = 0; i < kAhead; ++i) sum += dot(loaded[i], x[first + i * kWarp]);
  }
  for (int offset = kWarp / 2; offset > 0; offset /= 2) sum += __shfl_xor_sync(~0u, sum, offset);
  if (lane == 0) y[row] = __float2bfloat16_rn(sum);
}

/// Values in [-0.02, 0.02), from a hash of the position.
__global__ void fill_kernel(__nv_bfloat16* out, std::int64_t count) {
  const std::int64_t stride = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count;
       i += stride) {
    auto bits = static_cast<std::uint32_t>(i) * 2654435761u;
    bits = (bits ^ (bits >> 15)) * 2246822519u;
    bits ^= bits >> 13;
    out[i] = __float2bfloat16_rn((static_cast<float>(bits) * 0x1p-32f - 0.5f) * 0.04f);
  }
}

std::int64_t elements_of_layer() {
  std::int64_t elements = 0;
  for (const GemvSize& size : kLayer) elements += std::int64_t{size.rows} * size.cols;
  return elements;
}

__nv_bfloat16* random_values(std::int64_t count) {
  __nv_bfloat16* values = nullptr;
  check(cudaMalloc(&values, static_cast<std::size_t>(count) * sizeof(*values)));
  fill_kernel<<<1024, kThreads>>>(values, count);
  check(cudaGetLastError());
  return values;
}

}  // namespace

struct DecoderStandIn::Parts {
  __nv_bfloat16* weights;
  __nv_bfloat16* x;
  __nv_bfloat16* y;
  std::int64_t elements;
  struct Queue {
    cudaStream_t stream = nullptr;
    cudaGraphExec_t step =
        nullptr;  // recorded there: its kernels stay in the context of the stream
  };
  Queue queues[3];  // by Place
  CUgreenCtx of_tower = nullptr;
  CUgreenCtx apart = nullptr;

  [[nodiscard]] cudaGraphExec_t record(cudaStream_t stream) const;
  void join();  // ends a division
};

cudaGraphExec_t DecoderStandIn::Parts::record(cudaStream_t stream) const {
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  const __nv_bfloat16* weight = weights;
  for (std::int64_t layer = 0; layer < elements / elements_of_layer(); ++layer) {
    for (const GemvSize& size : kLayer) {
      gemv_kernel<<<size.rows / (kThreads / kWarp), kThreads, 0, stream>>>(
          reinterpret_cast<const uint4*>(weight), reinterpret_cast<const uint4*>(x), y, size.cols);
      check(cudaGetLastError());
      weight += std::int64_t{size.rows} * size.cols;
    }
  }
  cudaGraph_t graph = nullptr;
  check(cudaStreamEndCapture(stream, &graph));
  cudaGraphExec_t exec = nullptr;
  check(cudaGraphInstantiate(&exec, graph, 0));
  check(cudaGraphDestroy(graph));
  return exec;
}

void DecoderStandIn::Parts::join() {
  if (apart == nullptr) return;
  Queue& queue = queues[static_cast<int>(Place::kApart)];
  check(cudaGraphExecDestroy(queue.step));
  check(cudaStreamDestroy(queue.stream));
  call<PFN_cuGreenCtxDestroy_v12040>("cuGreenCtxDestroy", apart);
  call<PFN_cuGreenCtxDestroy_v12040>("cuGreenCtxDestroy", of_tower);
  apart = nullptr;
}

DecoderStandIn::DecoderStandIn(int layers) : parts_(std::make_unique<Parts>()) {
  Parts& p = *parts_;
  p.elements = layers * elements_of_layer();
  p.weights = random_values(p.elements);
  p.x = random_values(kLongest);
  p.y = random_values(kLongest);
  check(cudaDeviceSynchronize());
  int lowest = 0;
  int highest = 0;
  check(cudaDeviceGetStreamPriorityRange(&lowest, &highest));
  for (const auto& [place, priority] :
       {std::pair(Place::kEqual, lowest), std::pair(Place::kBefore, highest)}) {
    Parts::Queue& queue = p.queues[static_cast<int>(place)];
    check(cudaStreamCreateWithPriority(&queue.stream, cudaStreamNonBlocking, priority));
    queue.step = p.record(queue.stream);
  }
}

DecoderStandIn::~DecoderStandIn() {
  parts_->join();
  for (const Place place : {Place::kEqual, Place::kBefore}) {
    const Parts::Queue& queue = parts_->queues[static_cast<int>(place)];
    check(cudaGraphExecDestroy(queue.step));
    check(cudaStreamDestroy(queue.stream));
  }
  for (__nv_bfloat16* const memory : {parts_->weights, parts_->x, parts_->y})
    check(cudaFree(memory));
}

double DecoderStandIn::gigabytes() const {
  return static_cast<double>(parts_->elements) * sizeof(__nv_bfloat16) * 1e-9;
}

int DecoderStandIn::divide(int sms_of_tower) {
  Parts& p = *parts_;
  p.join();
  CUdevResource all{};
  CUdevResource first{};
  CUdevResource others{};
  unsigned groups = 1;
  call<PFN_cuDeviceGetDevResource_v12040>("cuDeviceGetDevResource", 0, &all,
                                          CU_DEV_RESOURCE_TYPE_SM);
  const unsigned step = all.sm.smCoscheduledAlignment;
  call<PFN_cuDevSmResourceSplitByCount_v12040>("cuDevSmResourceSplitByCount", &first, &groups, &all,
                                               &others, 0u,
                                               static_cast<unsigned>(sms_of_tower) / step * step);
  p.of_tower = green_context(first);
  p.apart = green_context(others);
  Parts::Queue& queue = p.queues[static_cast<int>(Place::kApart)];
  call<PFN_cuGreenCtxStreamCreate_v12050>("cuGreenCtxStreamCreate", &queue.stream, p.apart,
                                          static_cast<unsigned>(CU_STREAM_NON_BLOCKING), 0);
  queue.step = p.record(queue.stream);
  return static_cast<int>(first.sm.smCount);
}

void DecoderStandIn::in_context_of_tower(const std::function<void()>& action) const {
  CUcontext context = nullptr;
  call<PFN_cuCtxFromGreenCtx_v12040>("cuCtxFromGreenCtx", &context, parts_->of_tower);
  call<PFN_cuCtxPushCurrent_v4000>("cuCtxPushCurrent", context);
  const std::unique_ptr<CUctx_st, void (*)(CUctx_st*)> pop(context, [](CUctx_st* pushed) {
    call<PFN_cuCtxPopCurrent_v4000>("cuCtxPopCurrent", &pushed);
  });
  action();
}

std::vector<double> DecoderStandIn::run(Place place, const std::stop_token& stop) const {
  using Clock = std::chrono::steady_clock;
  const auto [stream, step] = parts_->queues[static_cast<int>(place)];
  std::vector<double> steps_ms;
  while (!stop.stop_requested()) {
    const Clock::time_point begin = Clock::now();
    check(cudaGraphLaunch(step, stream));
    check(cudaStreamSynchronize(stream));
    steps_ms.push_back(std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
  }
  return steps_ms;
}

}  // namespace fovea::bench
