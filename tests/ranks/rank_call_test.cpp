// What the ranks of a call agree on, step by step; whole calls are in encode_on_ranks_test.cpp.
#include "ranks/rank_call.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>

#include "core/check.h"
#include "ranks/description.h"
#include "ranks/golden_engine.h"
#include "ranks/mixed_items.h"
#include "ranks/thread_group.h"

namespace fovea::ranks {
namespace {

/// The message of the failure that all ranks know of, "" if `work` throws none.
std::string shared_failure(const std::function<void()>& work) {
  try {
    work();
  } catch (const SharedFailure& failure) {
    return failure.error.what();
  }
  return "";
}

class CallOfTwoRanks : public ::testing::Test {
 protected:
  /// Runs work(call, communicator) on both ranks, and expects that the group goes on.
  void on_ranks(const std::function<void(RankCall&, Communicator&)>& work) {
    const auto errors = test::on_ranks(group_, [&](Communicator& ranks) {
      RankCall call(engine_, ranks, items_, options_);
      work(call, ranks);
      ranks.all_gather({}, {});
    });
    for (const auto& error : errors) EXPECT_FALSE(error) << error->what();
  }

  Engine engine_ = test::load_on_cpu(test::golden_qwen());
  std::vector<MediaItem> items_ = test::mixed_items(engine_.report(), 3, 3);
  EncodeOptions options_;
  std::vector<std::unique_ptr<Communicator>> group_ = connect_threads(2);
};

TEST_F(CallOfTwoRanks, GoesOnWhereNoRankFails) {
  std::atomic<int> done{0};
  on_ranks([&](RankCall& call, Communicator&) {
    EXPECT_EQ(shared_failure([&] { call.on_all_ranks([&] { ++done; }); }), "");
    EXPECT_EQ(done, 2);
  });
}

TEST_F(CallOfTwoRanks, KnowsTheFailureOfOneOnBoth) {
  on_ranks([](RankCall& call, Communicator& ranks) {
    const std::string failure = shared_failure(
        [&] { call.on_all_ranks([&] { FOVEA_CHECK(ranks.rank() == 0, kNotFound, "no file"); }); });
    EXPECT_EQ(failure, "rank 1: no file");
  });
}

TEST_F(CallOfTwoRanks, TakesTheFailureOfTheOtherForTheCauseOfItsStop) {
  on_ranks([](RankCall& call, Communicator& ranks) {
    const std::string failure = shared_failure([&] {
      call.on_all_ranks([&] {
        FOVEA_CHECK(ranks.rank() == 0, kNotFound, "no file");
        while (!ranks.raised().stop_requested()) std::this_thread::yield();
        throw Error(ErrorCode::kCancelled, "stopped");
      });
    });
    EXPECT_EQ(failure, "rank 1: no file") << "though rank 0 comes first";
  });
}

TEST_F(CallOfTwoRanks, GivesEveryItemToOneRank) {
  on_ranks([&](RankCall& call, Communicator&) {
    call.on_all_ranks([&] { call.assign({}); });
    std::vector<std::size_t> all;
    for (std::size_t rank = 0; rank < call.num_ranks(); ++rank) {
      EXPECT_FALSE(call.pieces_of(rank).empty());
      all.insert(all.end(), call.pieces_of(rank).begin(), call.pieces_of(rank).end());
    }
    std::ranges::sort(all);
    EXPECT_EQ(all, (std::vector<std::size_t>{0, 1, 2}));
  });
}

TEST_F(CallOfTwoRanks, ExchangesDescriptionsAndKeepsRows) {
  on_ranks([&](RankCall& call, Communicator&) {
    call.on_all_ranks([&] {
      call.assign({});
      call.encode_share([&](ItemView share, const EncodeOptions&) {
        std::vector<Embedding> rows(share.size());
        for (Embedding& row : rows) {
          row.rows = 2;
          row.width = static_cast<std::int64_t>(call.rank()) + 1;
          row.data.resize(row_bytes(row));
        }
        return rows;
      });
    });
    call.exchange();
    EXPECT_GE(call.longest_share_bytes(), 2 * 2 * sizeof(float));
    std::vector<Embedding> results;
    call.on_all_ranks([&] { results = call.results(); });
    for (std::size_t rank = 0; rank < call.num_ranks(); ++rank) {
      for (const std::size_t item : call.pieces_of(rank)) {
        EXPECT_EQ(results[item].name, items_[item].name);
        EXPECT_EQ(results[item].width, static_cast<std::int64_t>(rank) + 1);
        EXPECT_EQ(results[item].data.empty(), rank != call.rank());
      }
    }
  });
}

TEST_F(CallOfTwoRanks, RefusesWhatRanksSayDifferently) {
  on_ranks([](RankCall& call, Communicator& ranks) {
    call.expect_same(ranks.rank() == 0 ? "one" : "other");
    EXPECT_EQ(shared_failure([&] { call.exchange(); }),
              "rank 1 was called with other items or options than rank 0, or has another model");
  });
}

TEST_F(CallOfTwoRanks, EndsTheGroupWithAFailureThatOneRankKnows) {
  const auto errors = test::on_ranks(group_, [](Communicator& ranks) {
    (void)run_call(ranks, [&]() -> std::vector<Embedding> {
      if (ranks.rank() == 1) throw std::bad_alloc();
      ranks.all_gather({}, {});
      return {};
    });
  });
  for (const auto& error : errors) {
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::kOutOfMemory);
    EXPECT_STREQ(error->what(), "rank 1: out of memory");
  }
}

TEST_F(CallOfTwoRanks, EndsTheGroupWhateverARankHasThrown) {
  const auto errors = test::on_ranks(group_, [](Communicator& ranks) {
    (void)run_call(ranks, [&]() -> std::vector<Embedding> {
      if (ranks.rank() == 1) throw std::runtime_error("no Error");
      ranks.all_gather({}, {});
      return {};
    });
  });
  for (const auto& error : errors) {
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::kInternal);
    EXPECT_STREQ(error->what(), "rank 1: unexpected exception: no Error");
  }
}

}  // namespace
}  // namespace fovea::ranks
