// Runs of several threads on one manager: who is next, and that none sees the rows of another.
#include <gtest/gtest.h>

#include <mutex>
#include <string>
#include <thread>

#include "graph/harness.h"
#include "support/property.h"

namespace fovea {
namespace {

using namespace test;  // NOLINT: the harness is written for these tests

thread_local char name_of_this_thread = '?';  // NOLINT(*-avoid-non-const-global-variables)

/// A manager that records whose sub-batches come in which order. The first one waits until as many
/// threads as `others_` wait for their turn.
class TurnsTest : public ::testing::Test {
 protected:
  TurnsTest() { h_.manager.capture(); }

  /// Runs grids on a thread of its own.
  [[nodiscard]] std::jthread start(char name, const std::vector<Grid>& grids) {
    return std::jthread([this, name, grids] {
      name_of_this_thread = name;
      h_.expect_right(mock_batch(h_.model, grids, static_cast<std::uint64_t>(name)));
    });
  }
  void begin_of_sub_batch() {
    order_ += name_of_this_thread;
    if (order_.size() > 1) return;
    first_runs_ = true;
    while (h_.manager.num_waiting() < others_) std::this_thread::yield();
  }

  std::size_t others_ = 1;
  std::atomic<bool> first_runs_ = false;
  std::string order_;  // guarded by the turns
  MockHarness h_{MockModel({.before_fill = [this] { begin_of_sub_batch(); }}), small_options()};
};

const std::vector<Grid> kLarge(5, {1, 16, 16});  // a sub-batch each
const std::vector<Grid> kSmall{{1, 4, 4}};

TEST_F(TurnsTest, ASmallRunWaitsForOneSubBatchOfALargeOne) {
  {
    const std::jthread large = start('L', kLarge);
    while (!first_runs_) std::this_thread::yield();
    const std::jthread small = start('s', kSmall);
  }
  EXPECT_EQ(order_, "LsLLLL");
}

TEST_F(TurnsTest, ASmallRunWaitsForOneSubBatchOfThreeLargeOnes) {
  others_ = 3;
  {
    const std::jthread first = start('L', kLarge);
    while (!first_runs_) std::this_thread::yield();
    const std::jthread second = start('M', kLarge);
    const std::jthread third = start('N', kLarge);
    const std::jthread small = start('s', kSmall);
  }
  EXPECT_EQ(order_.substr(0, 2), "Ls") << order_;
  EXPECT_EQ(order_.size(), 16u);
}

TEST_F(TurnsTest, RunsBesideOneAnotherGiveTheirOwnRows) {
  others_ = 0;
  std::vector<std::jthread> threads;
  for (const char name : {'a', 'b', 'c', 'd'}) {
    threads.emplace_back([this, name] {
      auto random = std::mt19937(static_cast<unsigned>(name));
      for (int round = 0; round < 30; ++round) {
        std::vector<Grid> grids(static_cast<std::size_t>(uniform(random, 1, 9)));
        for (Grid& grid : grids) {
          grid = {uniform(random, 1, 3), 2 * uniform(random, 1, 9), 2 * uniform(random, 1, 9)};
        }
        h_.expect_right(mock_batch(h_.model, grids, random()));
      }
    });
  }
  threads.clear();
  const Stats stats = h_.manager.stats();
  EXPECT_GT(stats.graph_hits, 0);
  EXPECT_GT(stats.graph_misses, 0);
  EXPECT_EQ(stats.sub_batches, std::ssize(order_));
}

TEST(Turns, RunsAndCapturesOnADeviceThatRunsLateGiveTheirOwnRows) {
  for (const Schedule schedule : {Schedule::kLast, Schedule::kCopyFirst}) {
    GraphManagerOptions options = small_options();
    options.missing = MissingGraph::kCapture;
    MockHarness h(MockModel{}, options, schedule);
    std::vector<Batch> batches;
    std::vector<OutputRows> out;
    for (std::uint64_t i = 0; i < 4; ++i) {  // a DeferredDevice is not made for several threads
      const auto side = 4 + 4 * static_cast<std::int64_t>(i);
      batches.push_back(mock_batch(h.model, {{1, side, side}, {2, 4, 4}, {1, 16, 16}}, i));
      out.emplace_back(*h.device, batches.back(), h.model.graph_spec().out_width);
    }
    h.manager.capture();
    for (const Batch& batch : batches) (void)h.encode_eager(batch);  // grows what there is to grow
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < batches.size(); ++i) {
      threads.emplace_back([&, i] {
        for (int round = 0; round < 20; ++round) {
          h.manager.execute(batches[i].pointers(), out[i].views());
        }
      });
    }
    threads.clear();
    for (std::size_t i = 0; i < batches.size(); ++i) {
      const std::vector<Rows> rows = out[i].rows();
      for (std::size_t j = 0; j < rows.size(); ++j) {
        EXPECT_TRUE(same_bits(rows[j], h.model.reference(batches[i].items()[j])));
      }
    }
  }
}

}  // namespace
}  // namespace fovea
