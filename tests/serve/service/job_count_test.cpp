#include "serve/service/job_count.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace fovea::serve {
namespace {

TEST(JobCount, IsBusySinceTheFirstOfTheJobsThatThereAre) {
  JobCount jobs;
  EXPECT_FALSE(jobs.busy_since());
  jobs.add();
  const auto first = jobs.busy_since();
  ASSERT_TRUE(first);
  jobs.add();
  jobs.remove();
  EXPECT_EQ(jobs.busy_since(), first);
  jobs.remove();
  EXPECT_FALSE(jobs.busy_since());
  jobs.add();
  EXPECT_GE(jobs.busy_since().value(), *first);
}

/// A server that was idle for long would be called unhealthy with its first job.
TEST(JobCount, NobodySeesAJobWithTheTimeOfEarlierOnes) {
  JobCount jobs;
  std::atomic<JobCount::Time> idle_since{};
  std::atomic<bool> is_over = false;
  std::thread worker([&] {
    for (int i = 0; i < 100'000; ++i) {
      jobs.add();
      jobs.remove();
      idle_since = std::chrono::steady_clock::now();
    }
    is_over = true;
  });
  bool is_right = true;
  while (!is_over && is_right) {
    const JobCount::Time idle = idle_since;
    const auto busy = jobs.busy_since();
    is_right = !busy || *busy >= idle;
  }
  worker.join();
  EXPECT_TRUE(is_right);
}

}  // namespace
}  // namespace fovea::serve
