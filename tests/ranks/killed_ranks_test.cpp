// Ranks in processes of their own that end by a signal, in every phase of a call.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>

#include "ranks/rank_programs.h"
#include "support/golden.h"
#include "support/temporary_directory.h"

namespace fovea::test {
namespace {

struct Phase {
  const char* name;  ///< as rank_program.cpp knows it
  const char* when;
};

constexpr Phase kPhases[] = {{"connected", "before it encodes"},
                             {"encode", "while it encodes"},
                             {"gather-0", "after it has encoded"},
                             {"gather-1", "in the gather of sizes"},
                             {"gather-2", "in the gather of descriptions"},
                             {"gather-3", "before rows are gathered"},
                             {"gather-4", "in the gather of rows"}};

constexpr Phase kPhasesToBlocks[] = {
    {"gather-0", "before it encodes"},        {"gather-1", "in the choice of the way"},
    {"encode", "while it encodes"},           {"gather-2", "after it has encoded"},
    {"gather-5", "before rows are gathered"}, {"gather-6", "in the gather of rows"}};

class KilledRanks : public ::testing::Test {
 protected:
  /// Runs three ranks, one of which ends as told.
  std::vector<RankOutcome> run(int ending_rank, const std::string& end,
                               std::chrono::milliseconds limit = std::chrono::minutes(5),
                               bool to_blocks = false) {
    return run_rank_programs({.size = 3,
                              .rendezvous = "file://" + folder_ / "ranks",
                              .model = golden_folder("qwen3_vl", "model.safetensors"),
                              .time_limit = limit,
                              .ending_rank = ending_rank,
                              .end = end,
                              .to_blocks = to_blocks});
  }

  /// The others report the same, and nothing stays behind.
  void expect_for_others(const std::vector<RankOutcome>& ranks, std::size_t ended,
                         const std::string& report) {
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      EXPECT_EQ(ranks[rank].signal, rank == ended ? SIGKILL : 0);
      if (rank != ended) {
        EXPECT_EQ(ranks[rank].output, report) << rank;
      }
    }
    EXPECT_EQ(folder_.entries(), 0U);
  }

  TemporaryDirectory folder_;
};

// Nobody waits for the time limit of five minutes, which is that of the test.
TEST_F(KilledRanks, AreReportedByAllOthersInEveryPhase) {
  for (const Phase& phase : kPhases) {
    SCOPED_TRACE(phase.when);
    expect_for_others(run(2, phase.name), 2, "error unavailable: rank 2 has ended\n");
    expect_for_others(run(0, phase.name), 0,
                      "error unavailable: rank 0 has ended or left the group\n");
  }
}

TEST_F(KilledRanks, AreReportedWhereRowsGoToBlocks) {
  constexpr std::chrono::minutes kLimit{5};
  for (const Phase& phase : kPhasesToBlocks) {
    SCOPED_TRACE(phase.when);
    expect_for_others(run(1, phase.name, kLimit, /*to_blocks=*/true), 1,
                      "error unavailable: rank 1 has ended\n");
  }
  const std::vector<RankOutcome> whole = run(-1, "never");
  for (const RankOutcome& rank : run(-1, "never", kLimit, /*to_blocks=*/true)) {
    EXPECT_EQ(rank.output, whole.front().output);
  }
}

TEST_F(KilledRanks, RankZeroThatIsStoppedIsReportedAfterTheTimeLimit) {
  expect_for_others(run(0, "stop", std::chrono::seconds(8)), 0,
                    "error deadline: rank 0 did not answer a gather within 8000 ms\n");
}

TEST_F(KilledRanks, ThatHangAreReportedAfterTheTimeLimit) {
  expect_for_others(run(1, "hang", std::chrono::seconds(8)), 1,
                    "error deadline: rank 1 did not come to a gather within 8000 ms\n");
}

TEST_F(KilledRanks, LeaveRoomForANewGroup) {
  (void)run(0, "gather-4");
  (void)run(1, "encode");
  for (const RankOutcome& rank : run(-1, "never")) {
    EXPECT_THAT(rank.output, ::testing::StartsWith("item 0 "));
    EXPECT_EQ(rank.signal, 0);
  }
}

}  // namespace
}  // namespace fovea::test
