#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <vector>

namespace fovea::test {

/// How the processes of a group are started (rank_program.cpp).
struct RankPrograms {
  int size = 2;
  std::string rendezvous = {};
  std::string model = {};
  std::chrono::milliseconds time_limit{60'000};
  int num_items = 5;
  int ending_rank = -1;  ///< -1: none
  std::string end = "never";
  bool to_blocks = false;  ///< rows go to memory of the caller
};

/// What became of a process.
struct RankOutcome {
  std::string output;
  int signal = 0;  ///< that ended it; 0: it exited
};

/// Starts the ranks of a group, and returns when all have ended. A rank that hangs is ended when
/// all others have.
[[nodiscard]] std::vector<RankOutcome> run_rank_programs(const RankPrograms& programs);

}  // namespace fovea::test
