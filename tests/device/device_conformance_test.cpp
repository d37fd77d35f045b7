// What device.h promises, on every backend of this machine.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/check.h"
#include "device/device_fixture.h"
#include "device/device_memory.h"
#include "support/expect_error.h"

namespace fovea::test {
namespace {

INSTANTIATE_TEST_SUITE_P(Devices, DeviceTest, ::testing::ValuesIn(available_devices()),
                         device_name);
INSTANTIATE_TEST_SUITE_P(Sleeping, DeviceTest, ::testing::ValuesIn(sleeping_gpus()), device_name);

bool is_aligned(const Buffer& buffer) {
  return reinterpret_cast<std::uintptr_t>(buffer.data()) % 256 == 0;
}

TEST_P(DeviceTest, SaysWhatItIs) {
  const DeviceProperties& properties = device().properties();
  EXPECT_TRUE(properties.name == "cpu" || properties.name.starts_with("cuda:")) << properties.name;
  EXPECT_FALSE(properties.description.empty());
  EXPECT_GE(properties.parallelism, 1);
  EXPECT_GT(properties.total_bytes, std::size_t{1} << 20);
  EXPECT_EQ(properties.host_memory, properties.name == "cpu");
  EXPECT_EQ(properties.software.empty(), properties.host_memory);
  const bool names_cudnn = properties.software.find(", cuDNN 9.") != std::string::npos;
  EXPECT_EQ(names_cudnn, GetParam().name == "cuda_cudnn") << properties.software;
}

TEST_P(DeviceTest, MemoryIsZeroAndAligned) {
  for (const std::size_t bytes : {1u, 255u, 256u, 1000u, 100000u}) {
    const Buffer buffer = device().allocate(bytes);
    EXPECT_EQ(buffer.bytes(), bytes);
    EXPECT_TRUE(is_aligned(buffer));
    EXPECT_EQ(read(buffer), std::vector<std::uint8_t>(bytes, 0));
    write(buffer, std::vector<std::uint8_t>(bytes, 0xff));  // the next one may get this memory
  }
}

TEST_P(DeviceTest, HostMemoryIsZeroAlignedAndReadableByTheHost) {
  const Buffer buffer = device().allocate_host(kBytes);
  EXPECT_TRUE(is_aligned(buffer));
  for (std::size_t i = 0; i < kBytes; ++i) EXPECT_EQ(buffer.data()[i], std::byte{0});
  const auto bytes = counting(1);
  std::memcpy(buffer.data(), bytes.data(), kBytes);
  const Buffer there = device().allocate(kBytes);
  stream().copy(there.data(), buffer.data(), kBytes);
  EXPECT_EQ(read(there), bytes);
}

TEST_P(DeviceTest, MemoryOfAGpuHasANameForOtherProcesses) {
  const Buffer buffer = device().allocate(kBytes);
  if (device().properties().host_memory) {
    expect_error(ErrorCode::kUnsupported, "cpu: its memory has no name",
                 [&] { (void)name_memory(device(), buffer); });
    return;
  }
  const DeviceMemoryName name = name_memory(device(), buffer);
  EXPECT_EQ(name.bytes, kBytes);
  EXPECT_EQ(name.handle.size(), 64U);
  EXPECT_EQ(name.gpu.size(), 40U) << name.gpu;
  expect_error(ErrorCode::kDevice, "memory of another process on " + name.gpu,
               [&] { (void)MappedMemory(name); });  // CUDA maps none of this one
}

TEST_P(DeviceTest, NoBytesIsALegalAllocation) {
  const Buffer buffer = device().allocate(0);
  EXPECT_EQ(buffer.bytes(), 0u);
  EXPECT_NO_THROW(stream().copy(buffer.data(), buffer.data(), 0));
}

TEST_P(DeviceTest, CountsWhatIsAllocated) {
  const std::size_t before = device().allocated_bytes();
  {
    const Buffer a = device().allocate(kBytes);
    Buffer b = device().allocate(3 * kBytes);
    EXPECT_GE(device().allocated_bytes(), before + 4 * kBytes);
    const Buffer moved = std::move(b);
    EXPECT_GE(device().allocated_bytes(), before + 4 * kBytes);
  }
  EXPECT_EQ(device().allocated_bytes(), before);
}

TEST_P(DeviceTest, RefusesImpossibleAllocationsWithTheirSize) {
  const std::size_t before = device().allocated_bytes();
  constexpr std::size_t kImpossible = std::numeric_limits<std::size_t>::max() - 10;
  expect_error(ErrorCode::kOutOfMemory, cat(kImpossible),
               [&] { (void)device().allocate(kImpossible); });
  EXPECT_EQ(device().allocated_bytes(), before);
  EXPECT_NO_THROW((void)device().allocate(kBytes));
}

TEST_P(DeviceTest, RefusesAllocationsThatTheSystemRefuses) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers end the program here";
#endif
  constexpr std::size_t kTooMuch = std::size_t{1} << 60;
  expect_error(ErrorCode::kOutOfMemory, cat(kTooMuch), [&] { (void)device().allocate(kTooMuch); });
}

TEST_P(DeviceTest, AllocatesFromSeveralThreads) {
  const std::size_t before = device().allocated_bytes();
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 50; ++i) (void)device().allocate(kBytes);
      });
    }
  }
  EXPECT_EQ(device().allocated_bytes(), before);
}

TEST_P(DeviceTest, CopiesAndFillsInOrder) {
  const Buffer a = device().allocate(kBytes);
  const Buffer b = device().allocate(kBytes);
  const auto bytes = counting(1);
  stream().copy(a.data(), reinterpret_cast<const std::byte*>(bytes.data()), kBytes);
  stream().copy(b.data(), a.data(), kBytes);
  stream().fill_zero(a.data() + 10, 20);
  auto with_hole = bytes;
  std::fill(with_hole.begin() + 10, with_hole.begin() + 30, std::uint8_t{0});
  EXPECT_EQ(read(a), with_hole);
  EXPECT_EQ(read(b), bytes);
}

TEST_P(DeviceTest, UploadsTensors) {
  const std::vector<std::int32_t> values{1, -2, 3, 4, 5, 6};
  const Tensor tensor = upload(
      device(), stream(), {reinterpret_cast<const std::byte*>(values.data()), DType::kI32, {2, 3}});
  EXPECT_EQ(tensor.dtype, DType::kI32);
  EXPECT_EQ(tensor.shape, (Shape{2, 3}));
  std::vector<std::int32_t> back(6);
  stream().copy(reinterpret_cast<std::byte*>(back.data()), tensor.buffer.data(), 24);
  stream().synchronize();
  EXPECT_EQ(back, values);
}

TEST_P(DeviceTest, MakesZeroFilledTensors) {
  const Tensor tensor = make_tensor(device(), DType::kBF16, {3, 5});
  EXPECT_EQ(tensor.view().bytes(), 30u);
  EXPECT_EQ(read(tensor.buffer), std::vector<std::uint8_t>(30, 0));
}

TEST_P(DeviceTest, CaptureRecordsAndDoesNotRun) {
  const Buffer from = device().allocate(kBytes);
  const Buffer to = device().allocate(kBytes);
  write(from, counting(1));
  int calls = 0;
  const auto graph = stream().capture([&] {
    ++calls;
    stream().copy(to.data(), from.data(), kBytes);
  });
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(graph->num_nodes(), 1u);
  EXPECT_EQ(read(to), std::vector<std::uint8_t>(kBytes, 0));
  stream().replay(*graph);
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(read(to), counting(1));
}

TEST_P(DeviceTest, AReplayReadsMemoryAsItIsThen) {
  const Buffer from = device().allocate(kBytes);
  const Buffer to = device().allocate(kBytes);
  const auto graph = stream().capture([&] { stream().copy(to.data(), from.data(), kBytes); });
  for (const int first : {1, 77, 1}) {
    write(from, counting(first));
    stream().replay(*graph);
    EXPECT_EQ(read(to), counting(first));
  }
}

TEST_P(DeviceTest, RecordedWorkRunsInOrderAmongOtherWork) {
  const Buffer a = device().allocate(kBytes);
  const Buffer b = device().allocate(kBytes);
  const Buffer c = device().allocate(kBytes);
  const auto graph = stream().capture([&] {
    stream().copy(b.data(), a.data(), kBytes);
    stream().fill_zero(a.data(), kBytes);
    stream().copy(c.data(), b.data(), kBytes);
  });
  EXPECT_EQ(graph->num_nodes(), 3u);
  const auto bytes = counting(9);
  stream().copy(a.data(), reinterpret_cast<const std::byte*>(bytes.data()), kBytes);
  stream().replay(*graph);
  stream().fill_zero(b.data(), kBytes);
  EXPECT_EQ(read(a), std::vector<std::uint8_t>(kBytes, 0));
  EXPECT_EQ(read(b), std::vector<std::uint8_t>(kBytes, 0));
  EXPECT_EQ(read(c), bytes);
}

TEST_P(DeviceTest, KeepsSeveralRecordingsApart) {
  const Buffer from = device().allocate(kBytes);
  const Buffer first = device().allocate(kBytes);
  const Buffer second = device().allocate(kBytes);
  write(from, counting(3));
  auto to_first = stream().capture([&] { stream().copy(first.data(), from.data(), kBytes); });
  const auto to_second =
      stream().capture([&] { stream().copy(second.data(), from.data(), kBytes); });
  to_first.reset();
  stream().replay(*to_second);
  EXPECT_EQ(read(first), std::vector<std::uint8_t>(kBytes, 0));
  EXPECT_EQ(read(second), counting(3));
}

TEST_P(DeviceTest, AnEmptyRecordingIsLegal) {
  const auto graph = stream().capture([] {});
  EXPECT_EQ(graph->num_nodes(), 0u);
  EXPECT_NO_THROW(stream().replay(*graph));
  EXPECT_NO_THROW(stream().synchronize());
}

TEST_P(DeviceTest, AFailedCaptureLeavesTheStreamUsable) {
  const Buffer from = device().allocate(kBytes);
  const Buffer to = device().allocate(kBytes);
  write(from, counting(5));
  EXPECT_THROW((void)stream().capture([&] {
    stream().copy(to.data(), from.data(), kBytes);
    throw std::runtime_error("no");
  }),
               std::runtime_error);
  EXPECT_EQ(read(to), std::vector<std::uint8_t>(kBytes, 0));
  stream().copy(to.data(), from.data(), kBytes);
  EXPECT_EQ(read(to), counting(5));
  const auto graph = stream().capture([&] { stream().fill_zero(to.data(), kBytes); });
  stream().replay(*graph);
  EXPECT_EQ(read(to), std::vector<std::uint8_t>(kBytes, 0));
}

TEST_P(DeviceTest, OneStreamWaitsForAnother) {
  const std::unique_ptr<Stream> other = device().create_stream();
  const Buffer from = device().allocate(kBytes);
  const Buffer to = device().allocate(kBytes);
  const auto bytes = counting(8);
  stream().copy(from.data(), reinterpret_cast<const std::byte*>(bytes.data()), kBytes);
  other->wait_for(stream());
  other->copy(to.data(), from.data(), kBytes);
  stream().wait_for(*other);
  stream().fill_zero(from.data(), kBytes);
  EXPECT_EQ(read(to), bytes);
}

TEST_P(DeviceTest, AStreamForCopiesTakesNoMemoryAndCopies) {
  const std::size_t before = device().allocated_bytes();
  const std::unique_ptr<Stream> copies = device().create_copy_stream();
  EXPECT_EQ(device().allocated_bytes(), before);
  const Buffer there = device().allocate(kBytes);
  const auto bytes = counting(4);
  copies->copy(there.data(), reinterpret_cast<const std::byte*>(bytes.data()), kBytes);
  EXPECT_EQ(read(*copies, there), bytes);
  const auto graph = copies->capture([&] { copies->fill_zero(there.data(), kBytes); });
  copies->replay(*graph);
  stream().wait_for(*copies);
  EXPECT_EQ(read(there), std::vector<std::uint8_t>(kBytes, 0));
}

TEST_P(DeviceTest, StreamsOfTwoThreadsDoNotDisturbEachOther) {
  std::vector<std::vector<std::uint8_t>> results(3);
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < results.size(); ++t) {
      threads.emplace_back([&, t] {
        const std::unique_ptr<Stream> mine = device().create_stream();
        const Buffer from = device().allocate(kBytes);
        const Buffer to = device().allocate(kBytes);
        const auto bytes = counting(static_cast<int>(10 * t));
        mine->copy(from.data(), reinterpret_cast<const std::byte*>(bytes.data()), kBytes);
        const auto graph = mine->capture([&] { mine->copy(to.data(), from.data(), kBytes); });
        for (int i = 0; i < 20; ++i) mine->replay(*graph);
        results[t] = read(*mine, to);
      });
    }
  }
  for (std::size_t t = 0; t < results.size(); ++t)
    EXPECT_EQ(results[t], counting(static_cast<int>(10 * t)));
}

/// A release function that notes what it was asked to release.
struct Released {
  static void note(void* context, std::byte* data, std::size_t bytes) noexcept {
    static_cast<std::vector<Released>*>(context)->push_back({data, bytes});
  }
  std::byte* data;
  std::size_t bytes;
};

TEST(Buffer, ReleasesOnceWhoeverHoldsIt) {
  std::vector<Released> released;
  std::byte memory[2];
  {
    Buffer first(&memory[0], 1, &Released::note, &released);
    Buffer second(&memory[1], 2, &Released::note, &released);
    const Buffer moved(std::move(first));
    EXPECT_EQ(moved.data(), &memory[0]);
    EXPECT_TRUE(released.empty());
    second = Buffer();
    ASSERT_EQ(released.size(), 1u);
    EXPECT_EQ(released[0].data, &memory[1]);
    EXPECT_EQ(released[0].bytes, 2u);
  }
  ASSERT_EQ(released.size(), 2u);
  EXPECT_EQ(released[1].data, &memory[0]);
}

TEST(Buffer, WithoutMemoryReleasesNothing) {
  const Buffer empty;
  EXPECT_EQ(empty.data(), nullptr);
  EXPECT_EQ(empty.bytes(), 0u);
}

}  // namespace
}  // namespace fovea::test
