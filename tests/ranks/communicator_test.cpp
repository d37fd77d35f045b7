// Groups of threads: gathers, failures that all agree on, and what ends a group.
#include "fovea/communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <stop_token>
#include <thread>

#include "ranks/thread_group.h"
#include "ranks/transport/shared_memory.h"
#include "support/expect_error.h"

namespace fovea {
namespace {

using std::chrono::milliseconds;
using test::on_ranks;

std::vector<std::byte> bytes_of_rank(int rank, std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) {
    bytes[i] = static_cast<std::byte>(i * 31 + i / 251 + static_cast<std::size_t>(rank) * 101);
  }
  return bytes;
}

void expect_gather(Communicator& ranks, std::size_t count) {
  std::vector<std::byte> all(count * static_cast<std::size_t>(ranks.size()));
  ranks.all_gather(bytes_of_rank(ranks.rank(), count), all);
  for (int rank = 0; rank < ranks.size(); ++rank) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(count) * rank;
    EXPECT_TRUE(std::equal(begin, begin + static_cast<std::ptrdiff_t>(count),
                           bytes_of_rank(rank, count).begin()))
        << count << " bytes of rank " << rank << " on " << ranks.rank();
  }
}

/// Expects that all ranks ended with the same error.
void expect_all(const std::vector<std::optional<Error>>& errors, ErrorCode code,
                const std::string& message) {
  for (const std::optional<Error>& error : errors) {
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), code);
    EXPECT_EQ(std::string(error->what()), message);
  }
}

TEST(Communicator, GathersAnyNumberOfBytes) {
  for (const int size : {1, 2, 5}) {
    const auto group = connect_threads(size);
    const auto errors = on_ranks(group, [&](Communicator& ranks) {
      EXPECT_EQ(ranks.size(), size);
      for (const std::size_t count :
           {std::size_t{0}, std::size_t{1}, std::size_t{1000}, ranks::kPieceBytes,
            ranks::kPieceBytes + 1, 3 * ranks::kPieceBytes, std::size_t{0}, std::size_t{17}}) {
        expect_gather(ranks, count);
      }
    });
    for (const auto& error : errors) EXPECT_FALSE(error) << error->what();
  }
}

TEST(Communicator, NeverMixesRounds) {
  const auto group = connect_threads(3);
  (void)on_ranks(group, [&](Communicator& ranks) {
    for (std::uint32_t round = 0; round < 500; ++round) {
      std::vector<std::uint32_t> all(3);
      ranks.all_gather(std::as_bytes(std::span(&round, 1)), std::as_writable_bytes(std::span(all)));
      EXPECT_THAT(all, ::testing::Each(round));
    }
  });
}

TEST(Communicator, AgreesOnTheFailureOfTheLowestRank) {
  const auto group = connect_threads(4);
  (void)on_ranks(group, [&](Communicator& ranks) {
    EXPECT_FALSE(agree(ranks, std::nullopt));
    std::optional<Error> mine;
    if (ranks.rank() == 2) mine.emplace(ErrorCode::kNotFound, "no photo.jpg");
    if (ranks.rank() == 3) mine.emplace(ErrorCode::kIo, "a longer message than the other one");
    const std::optional<Error> all = agree(ranks, mine);
    ASSERT_TRUE(all);
    EXPECT_EQ(all->code(), ErrorCode::kNotFound);
    EXPECT_STREQ(all->what(), "rank 2: no photo.jpg");
    EXPECT_FALSE(agree(ranks, std::nullopt));  // the group goes on
    EXPECT_FALSE(ranks.ended().stop_requested());
  });
}

/// What a rank says of its failure is what a stranger may have sent: here 4 GiB of message.
TEST(Communicator, RefusesToAgreeOnAMessageWithoutBound) {
  const auto group = connect_threads(2);
  const auto errors = on_ranks(group, [&](Communicator& ranks) {
    if (ranks.rank() == 0) {
      (void)agree(ranks, std::nullopt);
    } else {
      const std::array<std::uint32_t, 2> verdict{0, UINT32_MAX};
      std::array<std::byte, 2 * sizeof(verdict)> all{};
      ranks.all_gather(std::as_bytes(std::span(verdict)), all);
    }
  });
  ASSERT_TRUE(errors[0]);
  EXPECT_EQ(errors[0]->code(), ErrorCode::kCorruptData);
  EXPECT_STREQ(errors[0]->what(),
               "rank 1: expected a message of at most 4096 bytes, got one of 4294967295");
  EXPECT_FALSE(errors[1]);
}

TEST(Communicator, RaisesUntilTheNextGather) {
  const auto group = connect_threads(3);
  (void)on_ranks(group, [&](Communicator& ranks) {
    for (int round = 0; round < 50; ++round) {
      const std::stop_token raised = ranks.raised();
      if (ranks.rank() == round % 3) ranks.raise();
      while (!raised.stop_requested()) std::this_thread::yield();
      ranks.all_gather({}, {});
      EXPECT_FALSE(ranks.raised().stop_requested());
      ranks.all_gather({}, {});
    }
  });
}

TEST(Communicator, EndsForAllWhenOneAborts) {
  const auto group = connect_threads(3);
  const auto work = [](Communicator& ranks) {
    if (ranks.rank() == 1) ranks.abort(Error(ErrorCode::kOutOfMemory, "no memory for rows"));
    ranks.all_gather({}, {});
  };
  expect_all(on_ranks(group, work), ErrorCode::kOutOfMemory, "rank 1: no memory for rows");
  for (const auto& ranks : group) {
    EXPECT_TRUE(ranks->ended().stop_requested());
    EXPECT_TRUE(ranks->raised().stop_requested());
  }
  expect_all(on_ranks(group, work), ErrorCode::kOutOfMemory, "rank 1: no memory for rows");
}

TEST(Communicator, StopsWhatIsRegisteredBeforeItThrows) {
  const auto group = connect_threads(3);
  std::atomic<int> stopped = 0;
  const auto stop_slowly = [&] {
    std::this_thread::sleep_for(milliseconds(20));
    ++stopped;
  };
  const auto errors = on_ranks(group, [&](Communicator& ranks) {
    const std::stop_callback on_end(ranks.ended(), stop_slowly);
    ranks.all_gather({}, {});
    if (ranks.rank() == 1) ranks.abort(Error(ErrorCode::kOutOfMemory, "no memory for rows"));
    try {
      ranks.all_gather({}, {});
    } catch (const Error&) {
      EXPECT_TRUE(ranks.ended().stop_requested());
      EXPECT_TRUE(ranks.raised().stop_requested());
      EXPECT_GE(stopped, 1);
      throw;
    }
  });
  expect_all(errors, ErrorCode::kOutOfMemory, "rank 1: no memory for rows");
  EXPECT_EQ(stopped, 3);
}

TEST(Communicator, EndsWhenARankIsLate) {
  const auto group = connect_threads(4, milliseconds(100));
  const auto errors = on_ranks(group, [](Communicator& ranks) {
    if (ranks.rank() == 2 || ranks.rank() == 3) {
      while (!ranks.ended().stop_requested()) std::this_thread::yield();
    }
    if (ranks.rank() == 1) std::this_thread::sleep_for(milliseconds(5));  // rank 0 is the first
    ranks.all_gather({}, {});
  });
  expect_all(errors, ErrorCode::kDeadline, "ranks 2, 3 did not come to a gather within 100 ms");
}

TEST(Communicator, EndsWhenARankHasLeft) {
  for (const std::size_t leaving : {std::size_t{1}, std::size_t{2}}) {
    auto group = connect_threads(3);
    group.erase(group.begin() + static_cast<std::ptrdiff_t>(leaving));
    expect_all(on_ranks(group, [](Communicator& ranks) { ranks.all_gather({}, {}); }),
               ErrorCode::kUnavailable,
               "rank " + std::to_string(leaving) + " left the group before a gather");
  }
}

TEST(Communicator, EndsWhenRank0HasLeft) {
  auto group = connect_threads(3);
  group.erase(group.begin());
  expect_all(on_ranks(group, [](Communicator& ranks) { ranks.all_gather({}, {}); }),
             ErrorCode::kUnavailable, "rank 0 has ended or left the group");
}

TEST(Communicator, EndsWhenRanksGatherDifferently) {
  const auto group = connect_threads(2);
  const auto errors = on_ranks(group, [](Communicator& ranks) {
    if (ranks.rank() == 1) std::this_thread::sleep_for(milliseconds(20));
    expect_gather(ranks, ranks.rank() == 0 ? 8 : 12);
  });
  expect_all(errors, ErrorCode::kInvalidArgument, "rank 1 gathers 12 bytes, rank 0 8");
}

TEST(Communicator, RefusesMemoryOfAnotherSize) {
  const auto group = connect_threads(1);
  std::vector<std::byte> all(3);
  test::expect_error(ErrorCode::kInvalidArgument, "needs 2 bytes for all, got 3",
                     [&] { group[0]->all_gather(std::vector<std::byte>(2), all); });
}

TEST(Communicator, SaysHowGathersOnDevicesComeAbout) {
  const auto group = connect_threads(1);
  test::expect_error(ErrorCode::kUnsupported, "add_nccl()",
                     [&] { group[0]->all_gather_on_device(nullptr, nullptr, 0, nullptr); });
}

// Without NCCL, without a GPU, or with one for both: what works is in nccl_test.cpp.
TEST(Communicator, EndsForAllWhereNcclCannotBeUsed) {
  auto group = connect_threads(2);
  std::vector<std::string> messages(2);
  std::vector<std::jthread> threads;
  for (const std::size_t rank : {0, 1}) {
    threads.emplace_back([&, rank] {
      try {
        (void)add_nccl(std::move(group[rank]));
      } catch (const Error& error) {
        EXPECT_THAT(error.code(), ::testing::AnyOf(ErrorCode::kUnsupported, ErrorCode::kDevice));
        messages[rank] = error.what();
      }
    });
  }
  threads.clear();
  EXPECT_THAT(messages[0], ::testing::HasSubstr("NCCL"));
  EXPECT_EQ(messages[0], messages[1]);
}

TEST(Communicator, RefusesGroupsWithoutRanksOrTime) {
  test::expect_error(ErrorCode::kInvalidArgument, "the number of ranks must be in [1, 1024], got 0",
                     [] { (void)connect_threads(0); });
  test::expect_error(ErrorCode::kInvalidArgument, "got 0 ms",
                     [] { (void)connect_threads(2, milliseconds(0)); });
}

}  // namespace
}  // namespace fovea
