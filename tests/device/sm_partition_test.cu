// Which SMs of a GPU work occupies: asked by kernels with more CTAs than a GPU has room for.
#include "device/cuda/sm_partition.h"

#include <cudaTypedefs.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "device/cuda/cuda_check.h"
#include "device/cuda/cuda_stream.h"
#include "device/cuda_plugin.h"
#include "fovea/tower/ops/linear.h"
#include "support/expect_error.h"

namespace fovea::cuda {
namespace {

constexpr int kMostSms = 1024;
constexpr int kCtas = 8192;
constexpr int kBudget = 32;
constexpr int kStep = 8;  // of budgets, on the GPUs that have the largest

/// Marks the SM that a CTA runs on, which stays there for a while.
__global__ void mark_sm_kernel(int* marks) {
  unsigned sm = 0;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  constexpr long long kCycles = 20'000;
  const long long begin = clock64();
  while (clock64() - begin < kCycles) continue;
  marks[sm] = 1;
}

class SmPartitionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
      (void)cudaGetLastError();
      GTEST_SKIP() << "there is no GPU";
    }
    FOVEA_CUDA_CHECK(cudaMalloc(&marks_, kMostSms * sizeof(int)));
  }
  void TearDown() override { (void)cudaFree(marks_); }

  /// SMs that a kernel on this stream occupies, started eagerly or by a recording.
  [[nodiscard]] int occupied(cudaStream_t stream, bool recorded) {
    FOVEA_CUDA_CHECK(cudaMemsetAsync(marks_, 0, kMostSms * sizeof(int), stream));
    if (recorded) {
      FOVEA_CUDA_CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
      mark_sm_kernel<<<kCtas, 32, 0, stream>>>(marks_);
      cudaGraph_t graph = nullptr;
      FOVEA_CUDA_CHECK(cudaStreamEndCapture(stream, &graph));
      const UniqueGraph owner(graph);
      cudaGraphExec_t exec = nullptr;
      FOVEA_CUDA_CHECK(cudaGraphInstantiate(&exec, graph, 0));
      const UniqueGraphExec exec_owner(exec);
      FOVEA_CUDA_CHECK(cudaGraphLaunch(exec, stream));
      FOVEA_CUDA_CHECK(cudaStreamSynchronize(stream));
    } else {
      mark_sm_kernel<<<kCtas, 32, 0, stream>>>(marks_);
    }
    std::vector<int> marks(kMostSms);
    FOVEA_CUDA_CHECK(cudaMemcpyAsync(marks.data(), marks_, kMostSms * sizeof(int),
                                     cudaMemcpyDeviceToHost, stream));
    FOVEA_CUDA_CHECK(cudaStreamSynchronize(stream));
    return static_cast<int>(std::ranges::count(marks, 1));
  }

 private:
  int* marks_ = nullptr;
};

TEST_F(SmPartitionTest, IsTheWholeGpuWithoutABudget) {
  const SmPartition sms(0, 0);
  const UniqueStream stream = sms.create_stream();
  int all = 0;
  FOVEA_CUDA_CHECK(cudaDeviceGetAttribute(&all, cudaDevAttrMultiProcessorCount, 0));
  EXPECT_EQ(sms.num_sms(), all);
  EXPECT_EQ(SmPartition(0, all).num_sms(), all);
  EXPECT_EQ(occupied(stream.get(), false), all);
}

TEST_F(SmPartitionTest, KeepsKernelsAndRecordingsWithinTheBudget) {
  for (const int budget : {kBudget, kBudget + 1}) {
    SCOPED_TRACE(budget);
    const SmPartition sms(0, budget);
    EXPECT_LE(sms.num_sms(), budget);
    EXPECT_GT(sms.num_sms(), budget - kStep);
    const UniqueStream stream = sms.create_stream();
    EXPECT_EQ(occupied(stream.get(), false), sms.num_sms());
    EXPECT_EQ(occupied(stream.get(), true), sms.num_sms());
  }
}

TEST_F(SmPartitionTest, StreamsComeFirstOnTheirOwnSmsAndLastOnTheWholeGpu) {
  int lowest = 0;
  int highest = 0;
  FOVEA_CUDA_CHECK(cudaDeviceGetStreamPriorityRange(&lowest, &highest));
  for (const int budget : {0, kBudget}) {
    const SmPartition sms(0, budget);
    const UniqueStream stream = sms.create_stream();
    int priority = 1;
    FOVEA_CUDA_CHECK(cudaStreamGetPriority(stream.get(), &priority));
    EXPECT_EQ(priority, budget == 0 ? lowest : highest);
  }
}

/// A function of the driver as its interface had it in CUDA 12.4.
template <class Function>
Function driver(const char* name) {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  FOVEA_CUDA_CHECK(
      cudaGetDriverEntryPointByVersion(name, &function, 12040, cudaEnableDefault, &found));
  return reinterpret_cast<Function>(function);
}

/// Calls `action` while the context of a stream is current to this thread.
template <class Action>
void in_context_of(cudaStream_t stream, Action&& action) {
  CUcontext context = nullptr;
  ASSERT_EQ(driver<PFN_cuStreamGetCtx_v9020>("cuStreamGetCtx")(stream, &context), CUDA_SUCCESS);
  ASSERT_EQ(driver<PFN_cuCtxPushCurrent_v4000>("cuCtxPushCurrent")(context), CUDA_SUCCESS);
  action();
  ASSERT_EQ(driver<PFN_cuCtxPopCurrent_v4000>("cuCtxPopCurrent")(&context), CUDA_SUCCESS);
}

TEST_F(SmPartitionTest, StartsFromTheGreenContextThatIsCurrent) {
  const SmPartition of_caller(0, 2 * kBudget);
  const UniqueStream its_stream = of_caller.create_stream();
  in_context_of(its_stream.get(), [&] {
    const SmPartition same(0, 0);
    const SmPartition part(0, kBudget);
    EXPECT_EQ(same.num_sms(), of_caller.num_sms());
    EXPECT_EQ(part.num_sms(), kBudget);
    for (const SmPartition* sms : {&same, &part}) {
      const UniqueStream stream = sms->create_stream();
      EXPECT_EQ(occupied(stream.get(), true), sms->num_sms());
    }
    test::expect_error(ErrorCode::kInvalidArgument, "SMs for the tower",
                       [] { (void)SmPartition(0, 3 * kBudget); });
  });
}

TEST_F(SmPartitionTest, ADeviceStaysInTheContextThatItWasMadeIn) {
  const SmPartition of_caller(0, 2 * kBudget);
  const UniqueStream its_stream = of_caller.create_stream();
  std::unique_ptr<Device> device;
  const std::vector<float> weight(64 * 64, 0.5f);
  ops::PackedLinear packed;
  in_context_of(its_stream.get(), [&] {
    device = make_cuda_device(find_cuda(), {.index = 0});
    packed = ops::pack_linear(
        *device, {reinterpret_cast<const std::byte*>(weight.data()), DType::kF32, {64, 64}}, {});
  });
  EXPECT_EQ(device->properties().parallelism, of_caller.num_sms());
  const auto stream = device->create_stream();  // the context is not current any more
  EXPECT_EQ(occupied(static_cast<CudaStream&>(*stream).handle(), true), of_caller.num_sms());
}

TEST_F(SmPartitionTest, RefusesBudgetsThatTheGpuCannotSetApart) {
  test::expect_error(ErrorCode::kInvalidArgument, "SMs for the tower, got 5000",
                     [] { (void)SmPartition(0, 5000); });
  test::expect_error(ErrorCode::kInvalidArgument, "got -1", [] { (void)SmPartition(0, -1); });
  test::expect_error(ErrorCode::kInvalidArgument, "or more SMs, in steps of",
                     [] { (void)SmPartition(0, 1); });
}

}  // namespace
}  // namespace fovea::cuda
