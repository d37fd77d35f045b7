#include "bench/bench.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <filesystem>
#include <iterator>

namespace fovea::cli {
namespace {

std::chrono::microseconds processor_time() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::chrono::seconds(usage.ru_utime.tv_sec) +
         std::chrono::microseconds(usage.ru_utime.tv_usec);
}

std::ptrdiff_t num_threads() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}

TEST(HostLoad, ComputesUntilItEnds) {
  const std::ptrdiff_t threads_before = num_threads();
  const auto time_before = processor_time();
  {
    const HostLoad load(2);
    EXPECT_EQ(num_threads(), threads_before + 2);
    while (processor_time() - time_before < std::chrono::milliseconds(20)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  // A thread that has been joined may be counted for a moment.
  for (int i = 0; i < 1000 && num_threads() != threads_before; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(num_threads(), threads_before);
}

TEST(HostLoad, IsALineOfTheReport) {
  EXPECT_EQ(host_load_line(0), "");
  EXPECT_EQ(host_load_line(1), "host    1 busy thread beside the run\n");
}

}  // namespace
}  // namespace fovea::cli
