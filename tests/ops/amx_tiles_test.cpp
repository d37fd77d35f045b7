// The micro-kernel of AMX over an emulator of its instructions, which faults where a processor
// would: sums of integers for every height, and tiles that are free when a task ends. That of bf16
// is tested as a part of its kernel.
#include "ops/cpu/gemm/amx_tiles.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "support/tile_emulator.h"

namespace fovea::test {
namespace {

using Tiles = cpu::AmxTiles<EmulatedInt8>;

constexpr std::int64_t kSteps = 3;
constexpr std::int64_t kDepth = kSteps * cpu::kAmxBytes;
constexpr std::int64_t kStride = kDepth + 64;

std::vector<std::byte> random_bytes(std::int64_t count) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(count));
  std::mt19937 generator(1);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(generator() & 0xffu);
  return bytes;
}

/// Of row r and column n, over all of k.
std::int32_t naive_sum(const std::byte* row, const std::byte* panel, std::int64_t n) {
  std::int32_t sum = 0;
  for (std::int64_t k = 0; k < kDepth; ++k) {
    const std::byte weight = panel[k / 4 * cpu::kPanelRowBytes + 4 * n + k % 4];
    sum += static_cast<std::uint8_t>(row[k]) * static_cast<std::int8_t>(weight);
  }
  return sum;
}

TEST(AmxTiles, SumTheProductsOfEveryNumberOfRowsAndWriteNoOther) {
  constexpr std::int32_t kUntouched = -77;
  const std::vector<std::byte> x = random_bytes(Tiles::kRows * kStride);
  const std::vector<std::byte> panel = random_bytes(kSteps * cpu::kAmxRows * cpu::kPanelRowBytes);
  for (std::int64_t rows = 1; rows <= Tiles::kRows; ++rows) {
    std::vector<std::int32_t> sums((Tiles::kRows + 1) * cpu::kPanelColumns, kUntouched);
    Tiles tiles;
    std::int64_t calls = 0;
    tiles.multiply({.x = {x.data(), kStride},
                    .rows = rows,
                    .panel = panel.data(),
                    .depth = kSteps * cpu::kStepRows,
                    .upcoming = {panel.data(), 8}},
                   sums.data(), [&] { ++calls; });
    EXPECT_EQ(calls, kSteps);
    for (std::int64_t r = 0; r <= Tiles::kRows; ++r) {
      for (std::int64_t n = 0; n < cpu::kPanelColumns; ++n) {
        const std::int32_t want =
            r < rows ? naive_sum(x.data() + r * kStride, panel.data(), n) : kUntouched;
        ASSERT_EQ(sums[static_cast<std::size_t>(r * cpu::kPanelColumns + n)], want)
            << r << ", " << n << " of " << rows;
      }
    }
  }
}

TEST(AmxTiles, AreFreeWhenATaskEnds) {
  const std::vector<std::byte> bytes = random_bytes(cpu::kAmxRows * cpu::kPanelRowBytes);
  std::vector<std::int32_t> sums(cpu::kPanelColumns);
  {
    Tiles tiles;
    tiles.multiply({.x = {bytes.data(), 0},
                    .rows = 1,
                    .panel = bytes.data(),
                    .depth = 1,
                    .upcoming = {bytes.data(), 0}},
                   sums.data(), [] {});
    EXPECT_FALSE(EmulatedTiles::are_free());
  }
  EXPECT_TRUE(EmulatedTiles::are_free());
}

}  // namespace
}  // namespace fovea::test
