// The peak is a time, so a test can only ask that it is a number.
#include "ops/cpu/cpu_kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "ops/cpu/isa/isa_kernels.h"
#include "support/expect_error.h"

namespace fovea::test {
namespace {

TEST(FmaPeak, IsAPositiveRateOnOneAndSeveralThreads) {
  for (const int threads : {1, 3}) {
    const double gflops = cpu::fma_peak_gflops(threads, 1e-3);
    EXPECT_TRUE(std::isfinite(gflops));
    EXPECT_GT(gflops, 0.0);
  }
}

TEST(FmaPeak, OfBf16IsARateWhereTheInstructionIsUsed) {
  const std::string unit = cpu::choose_kernels(cpu::cpu_features()).bf16.name;
  const std::optional<double> gflops = cpu::bf16_peak_gflops(2, 1e-3);
  ASSERT_EQ(gflops.has_value(), unit == "avx512_bf16" || unit == "neon_bf16");
  EXPECT_TRUE(!gflops || (std::isfinite(*gflops) && *gflops > 0.0));
}

TEST(FmaPeak, NeedsAThread) {
  expect_error(ErrorCode::kInvalidArgument, "at least 1 thread",
               [] { (void)cpu::fma_peak_gflops(0, 1e-3); });
}

}  // namespace
}  // namespace fovea::test
