// What device.h promises about memory and queues of callers, on every backend of this machine.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "device/device_fixture.h"
#include "support/expect_error.h"

namespace fovea::test {
namespace {

class CallerMemory : public DeviceTest {};

INSTANTIATE_TEST_SUITE_P(Devices, CallerMemory, ::testing::ValuesIn(available_devices()),
                         device_name);

TEST_P(CallerMemory, CopiesRowsAsTheHostDoes) {
  constexpr std::int64_t kRows = 9;
  constexpr std::int64_t kWidth = 37;
  std::vector<float> values(kRows * kWidth);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = std::ldexp(1.0F + static_cast<float>(i) / 333, static_cast<int>(i % 48) - 30);
  }
  const DType dtypes[] = {DType::kF32, DType::kBF16, DType::kF16};
  for (const DType from : dtypes) {
    for (const DType to : dtypes) {
      for (const std::size_t gap : {0, 20}) {
        RowCopy copy{.from_dtype = from, .to_dtype = to, .rows = kRows, .width = kWidth};
        copy.from_stride = copy.from_row_bytes() + gap;
        copy.to_stride = copy.to_row_bytes() + 3 * gap;
        const Buffer source = device().allocate(kRows * copy.from_stride);
        const Buffer out = device().allocate(kRows * copy.to_stride);
        std::vector<std::uint8_t> here(source.bytes());
        for (std::size_t row = 0; row < kRows; ++row) {
          narrow_from_f32(values.data() + row * kWidth, from,
                          reinterpret_cast<std::byte*>(here.data()) + row * copy.from_stride,
                          kWidth);
        }
        write(source, here);
        std::vector<std::uint8_t> expected(out.bytes());
        copy.from = reinterpret_cast<const std::byte*>(here.data());
        copy.to = reinterpret_cast<std::byte*>(expected.data());
        copy_rows(copy);
        copy.from = source.data();
        copy.to = out.data();
        stream().copy_rows(copy);
        EXPECT_EQ(read(out), expected)
            << to_string(from) << " to " << to_string(to) << ", gap " << gap;
      }
    }
  }
}

TEST_P(CallerMemory, CopiesRowsToAndFromTheHost) {
  const auto bytes = counting(1);
  RowCopy copy{.from = reinterpret_cast<const std::byte*>(bytes.data()),
               .from_dtype = DType::kBF16,
               .from_stride = 20,
               .to_dtype = DType::kBF16,
               .to_stride = 12,
               .rows = 50,
               .width = 6};
  const Buffer there = device().allocate(600);
  copy.to = there.data();
  stream().copy_rows(copy);
  const auto packed = read(there);
  for (std::size_t row = 0; row < 50; ++row) {
    EXPECT_TRUE(std::equal(bytes.begin() + static_cast<std::ptrdiff_t>(row * 20),
                           bytes.begin() + static_cast<std::ptrdiff_t>(row * 20 + 12),
                           packed.begin() + static_cast<std::ptrdiff_t>(row * 12)));
  }
}

TEST_P(CallerMemory, CountsHowOftenTheHostWaits) {
  const std::int64_t before = device().host_waits();
  const Buffer memory = device().allocate(kBytes);
  stream().fill_zero(memory.data(), kBytes);
  const std::int64_t allocated = device().host_waits();
  stream().synchronize();
  const std::int64_t waits = device().properties().host_memory ? 0 : 1;
  EXPECT_EQ(allocated, before + waits);
  EXPECT_EQ(device().host_waits(), allocated + waits);
}

TEST_P(CallerMemory, KnowsItsMemory) {
  const Buffer memory = device().allocate(kBytes);
  const bool is_host = device().properties().host_memory;
  EXPECT_EQ(device().is_memory_of(memory.data() + 7, -1), is_host);
  EXPECT_EQ(device().is_memory_of(memory.data() + 7, 0), device().properties().name == "cuda:0");
  EXPECT_TRUE(device().is_memory_of(&memory, -1));
  EXPECT_FALSE(device().is_memory_of(&memory, 0));
  const Buffer pinned = device().allocate_host(kBytes);
  EXPECT_TRUE(device().is_memory_of(pinned.data(), -1));
}

TEST_P(CallerMemory, TakesPartInTheOrderOfAnotherStream) {
  if (device().properties().host_memory) {
    expect_error(ErrorCode::kInvalidArgument, "a stream of cuda:0, but this is a CPU",
                 [&] { (void)device().adopt_stream(0, nullptr); });
    return;
  }
  const std::unique_ptr<Stream> other = device().adopt_stream(0, nullptr);  // the default stream
  const Buffer from = device().allocate(kBytes);
  const Buffer to = device().allocate(kBytes);
  const auto bytes = counting(8);
  other->copy(from.data(), reinterpret_cast<const std::byte*>(bytes.data()), kBytes);
  stream().wait_for(*other);
  stream().copy(to.data(), from.data(), kBytes);
  other->wait_for(stream());
  other->fill_zero(from.data(), kBytes);
  EXPECT_EQ(read(*other, to), bytes);
  expect_error(ErrorCode::kInvalidArgument, "a stream of cuda:999",
               [&] { (void)device().adopt_stream(999, nullptr); });
}

}  // namespace
}  // namespace fovea::test
