#include "bench/mm_processor/runner.h"

#include <gtest/gtest.h>

#include "support/golden.h"

namespace fovea::cli {
namespace {

/// 64 x 64 pixels are 16 patches of Qwen3-VL, 4 rows.
MmRequest small_request(std::uint64_t seed) {
  return {.random = {{.size = {64, 64, 1}, .seed = seed}}, .files = {}};
}

class Runner : public ::testing::Test {
 protected:
  Engine engine_ = Engine::load(fovea::test::golden_folder("qwen3_vl", "model.safetensors"),
                                {.device = "cpu", .num_threads = 1});
  std::vector<MmRequest> requests_{small_request(1), small_request(2), small_request(3)};
  int answers_ = 0;
  RunContext context_{
      .engine = engine_, .requests = requests_, .encoding = ImageEncoding::kRaw, .advance = [this] {
        ++answers_;
      }};
};

TEST_F(Runner, EveryRequestRunsInEveryMode) {
  const TowerMode modes[] = {TowerMode::kEager, TowerMode::kGraphs};
  const std::vector<WorkloadRun> runs = run_in_turn(context_, modes);
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[0].mode, TowerMode::kEager);
  EXPECT_EQ(runs[0].counts.misses, 3);
  EXPECT_EQ(runs[1].counts.hits, 3);
  for (const WorkloadRun& run : runs) {
    ASSERT_EQ(run.completed.size(), 3U);
    EXPECT_EQ(run.completed[0].items, 1);
    EXPECT_EQ(run.completed[0].rows, 4);
    EXPECT_EQ(run.completed[0].encoder_calls, 1);
    EXPECT_GT(run.seconds, 0);
  }
  EXPECT_EQ(answers_, 6);
}

TEST_F(Runner, AFailedItemFailsItsRequestAlone) {
  requests_[1].files = {image_file("/nonexistent.png")};
  const TowerMode modes[] = {TowerMode::kGraphs};
  const std::vector<WorkloadRun> runs = run_in_turn(context_, modes);
  EXPECT_EQ(runs[0].completed.size(), 2U);
  ASSERT_EQ(runs[0].failures.size(), 1U);
  EXPECT_NE(runs[0].failures[0].find("/nonexistent.png"), std::string::npos);
  EXPECT_EQ(answers_, 3);
}

TEST_F(Runner, CallsOfRequestsSideBySideAreKnownInTotalOnly) {
  for (const Arrivals& arrivals :
       {Arrivals{.max_concurrency = 2}, Arrivals{.max_concurrency = 2, .per_second = 1e6}}) {
    answers_ = 0;
    const WorkloadRun run = run_arrivals(context_, TowerMode::kGraphs, arrivals);
    ASSERT_EQ(run.completed.size(), 3U);
    EXPECT_EQ(run.completed[0].encoder_calls, std::nullopt);
    EXPECT_EQ(run.counts.encoder_calls, 3);
    EXPECT_EQ(answers_, 3);
  }
}

}  // namespace
}  // namespace fovea::cli
