// What the CPU backend adds to the promises of device.h: closures, threads, misuse that it notices.
#include "device/cpu/cpu_device.h"

#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/float_mode.h"
#include "core/thread_pool.h"
#include "ops/cpu/cpu_kernels.h"
#include "support/expect_error.h"

namespace fovea::test {
namespace {

class CpuStreamTest : public ::testing::Test {
 protected:
  ThreadPool pool_{2};
  CpuStream stream_{pool_};
};

TEST_F(CpuStreamTest, RunsAClosureInsideTheCall) {
  int runs = 0;
  stream_.submit([&](ThreadPool& pool) {
    EXPECT_EQ(&pool, &pool_);
    ++runs;
  });
  EXPECT_EQ(runs, 1);
}

TEST_F(CpuStreamTest, TakesDenormalsForZeroDuringTheCallAlone) {
  const FloatMode host = float_mode();
  std::vector<FloatMode> modes;
  const auto note_mode = [&](ThreadPool&) { modes.push_back(float_mode()); };
  stream_.submit(note_mode);
  EXPECT_EQ(float_mode(), host);
  const auto graph = stream_.capture([&] { stream_.submit(note_mode); });
  stream_.replay(*graph);
  EXPECT_EQ(float_mode(), host);
  EXPECT_EQ(modes, (std::vector<FloatMode>{kTowerFloatMode, kTowerFloatMode}));
}

TEST_F(CpuStreamTest, KeepsClosuresDuringACaptureAndReplaysThemInOrder) {
  std::string log;
  const auto graph = stream_.capture([&] {
    stream_.submit([&](ThreadPool&) { log += 'a'; });
    stream_.submit([&](ThreadPool&) { log += 'b'; });
  });
  EXPECT_EQ(log, "");
  EXPECT_EQ(graph->num_nodes(), 2u);
  EXPECT_GT(graph->bytes(), 0u);
  stream_.replay(*graph);
  stream_.replay(*graph);
  EXPECT_EQ(log, "abab");
}

TEST_F(CpuStreamTest, AThrowingClosureReachesTheCallerAndDropsTheRest) {
  EXPECT_THROW(stream_.submit([](ThreadPool&) { throw std::runtime_error("no"); }),
               std::runtime_error);
  bool fail = true;
  int later = 0;
  const auto graph = stream_.capture([&] {
    stream_.submit([&](ThreadPool&) {
      if (fail) throw std::runtime_error("no");
    });
    stream_.submit([&](ThreadPool&) { ++later; });
  });
  EXPECT_THROW(stream_.replay(*graph), std::runtime_error);
  EXPECT_EQ(later, 0);
  fail = false;
  stream_.replay(*graph);  // the recording is as good as before
  EXPECT_EQ(later, 1);
}

TEST_F(CpuStreamTest, RefusesACaptureInsideACapture) {
  expect_error(ErrorCode::kInternal, "a capture is already under way on this stream",
               [&] { (void)stream_.capture([&] { (void)stream_.capture([] {}); }); });
  EXPECT_NO_THROW((void)stream_.capture([] {}));
}

TEST_F(CpuStreamTest, RefusesAReplayInsideACapture) {
  const auto graph = stream_.capture([] {});
  expect_error(ErrorCode::kInternal, "replay inside a capture",
               [&] { (void)stream_.capture([&] { stream_.replay(*graph); }); });
}

TEST_F(CpuStreamTest, RefusesToSynchronizeInsideACapture) {
  expect_error(ErrorCode::kInternal, "synchronize inside a capture",
               [&] { (void)stream_.capture([&] { stream_.synchronize(); }); });
}

class CpuDeviceTest : public ::testing::Test {
 protected:
  std::unique_ptr<Kernels> kernels_ = make_cpu_kernels(CpuIsa::kPortable);
};

TEST_F(CpuDeviceTest, HasAsManyThreadsAsAskedFor) {
  const auto device = make_cpu_device(3, *kernels_);
  EXPECT_EQ(device->properties().parallelism, 3);
  const auto stream = device->create_stream();
  int threads = 0;
  static_cast<CpuStream&>(*stream).submit([&](ThreadPool& pool) { threads = pool.size(); });
  EXPECT_EQ(threads, 3);
}

TEST_F(CpuDeviceTest, TakesAllCpusOfTheProcessByDefault) {
  EXPECT_EQ(make_cpu_device(0, *kernels_)->properties().parallelism, available_cpus());
}

TEST_F(CpuDeviceTest, RefusesANegativeNumberOfThreads) {
  expect_error(ErrorCode::kInvalidArgument, "number of threads must be >= 0, got -2",
               [&] { (void)make_cpu_device(-2, *kernels_); });
}

TEST_F(CpuDeviceTest, HandsOutTheKernelsItWasGiven) {
  EXPECT_EQ(&make_cpu_device(1, *kernels_)->kernels(), kernels_.get());
}

TEST_F(CpuDeviceTest, ComputesInF32OnHostMemory) {
  const auto device = make_cpu_device(1, *kernels_);
  EXPECT_EQ(device->properties().name, "cpu");
  EXPECT_EQ(device->properties().activation_dtype, DType::kF32);
  EXPECT_TRUE(device->properties().host_memory);
}

}  // namespace
}  // namespace fovea::test
