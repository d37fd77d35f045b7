// The hub by itself: what it sends to ranks that are bare sockets here.
#include "ranks/group/hub.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace fovea::ranks {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class HubOfSockets : public ::testing::Test {
 protected:
  /// Makes a hub of `size` ranks, and receives its welcome. @return the memory that comes with it.
  FileDescriptor start(int size, bool shares_memory, milliseconds time_limit = seconds(60)) {
    std::vector<FileDescriptor> of_hub;
    for (int rank = 0; rank < size; ++rank) {
      auto [own, other] = socket_pair();
      ranks_.push_back(std::move(own));
      of_hub.push_back(std::move(other));
    }
    hub_ = std::make_unique<Hub>(
        std::move(of_hub),
        GroupOptions{.size = size, .time_limit = time_limit, .shares_memory = shares_memory});
    FileDescriptor memory;
    for (int rank = 0; rank < size; ++rank) {
      Message welcome;
      EXPECT_EQ(receive_message(socket(rank), welcome, soon(), &memory), Transfer::kDone);
      EXPECT_EQ(welcome.kind, MessageKind::kWelcome);
      EXPECT_EQ(welcome.size, size);
      EXPECT_EQ(memory.is_open(), shares_memory);
    }
    return memory;
  }
  [[nodiscard]] int socket(int rank) const { return ranks_[static_cast<std::size_t>(rank)].get(); }
  [[nodiscard]] static Clock::time_point soon() { return Clock::now() + seconds(60); }

  void send(int rank, const Message& message, std::span<const std::byte> bytes = {}) {
    EXPECT_EQ(send_all(socket(rank), bytes_of(message), soon()), Transfer::kDone);
    EXPECT_EQ(send_all(socket(rank), bytes, soon()), Transfer::kDone);
  }
  [[nodiscard]] Message receive(int rank) const {
    Message message;
    EXPECT_EQ(receive_message(socket(rank), message, soon()), Transfer::kDone);
    return message;
  }
  /// Expects that a rank receives this error, and nothing after it.
  void expect_failure(int rank, ErrorCode code, const std::string& text) const {
    const Message message = receive(rank);
    ASSERT_EQ(message.kind, MessageKind::kFail);
    const std::optional<Error> failure = receive_failure(socket(rank), message, soon());
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->code(), code);
    EXPECT_EQ(failure->what(), text);
    expect_end(rank);
  }
  void expect_end(int rank) const {
    Message message;
    EXPECT_EQ(receive_message(socket(rank), message, soon()), Transfer::kClosed);
  }

  std::unique_ptr<Hub> hub_;
  std::vector<FileDescriptor> ranks_;  // last: the hub ends when they are closed
};

constexpr Message kGatherOf4{.kind = MessageKind::kGather, .bytes = 4, .total = 4};

TEST_F(HubOfSockets, AnswersAGatherWhenAllRanksHaveArrived) {
  EXPECT_TRUE(start(2, /*shares_memory=*/true).is_open());
  for (int round = 0; round < 2; ++round) {
    send(1, kGatherOf4);
    send(1, {.kind = MessageKind::kRaise, .rank = 1});
    EXPECT_EQ(receive(1).kind, MessageKind::kRaise) << "the gather is not complete";
    EXPECT_EQ(receive(0).kind, MessageKind::kRaise);
    send(0, kGatherOf4);
    for (const int rank : {0, 1}) {
      const Message message = receive(rank);
      EXPECT_EQ(message.kind, MessageKind::kGathered);
      EXPECT_EQ(message.bytes, 4U);
    }
  }
}

TEST_F(HubOfSockets, SendsThePiecesOfAllRanksWhereNoMemoryIsShared) {
  EXPECT_FALSE(start(3, /*shares_memory=*/false).is_open());
  for (const int rank : {2, 0, 1}) {
    send(rank, kGatherOf4, std::vector<std::byte>(4, static_cast<std::byte>(rank)));
  }
  for (const int rank : {0, 1, 2}) {
    EXPECT_EQ(receive(rank).kind, MessageKind::kGathered);
    std::vector<std::byte> pieces(12);
    EXPECT_EQ(receive_all(socket(rank), pieces, soon()), Transfer::kDone);
    for (std::size_t i = 0; i < pieces.size(); ++i) EXPECT_EQ(pieces[i], std::byte(i / 4));
  }
}

TEST_F(HubOfSockets, SendsTheFailureOfARankToAll) {
  (void)start(3, /*shares_memory=*/true);
  send_failure(socket(2), Error(ErrorCode::kNotFound, "no such file"), soon());
  for (const int rank : {0, 1, 2}) {
    expect_failure(rank, ErrorCode::kNotFound, "rank 2: no such file");
  }
}

TEST_F(HubOfSockets, NamesARankThatHasEnded) {
  (void)start(3, /*shares_memory=*/true);
  ranks_[1].reset();
  for (const int rank : {0, 2}) expect_failure(rank, ErrorCode::kUnavailable, "rank 1 has ended");
}

TEST_F(HubOfSockets, EndsAGroupWithWhatIsNoMessage) {
  (void)start(2, /*shares_memory=*/true);
  const std::vector<std::byte> noise(sizeof(Message), std::byte{'x'});
  EXPECT_EQ(send_all(socket(1), noise, soon()), Transfer::kDone);
  for (const int rank : {0, 1}) expect_failure(rank, ErrorCode::kUnavailable, "rank 1 has ended");
}

TEST_F(HubOfSockets, NamesRanksThatAreLateForAGather) {
  (void)start(3, /*shares_memory=*/true, milliseconds(50));
  send(1, kGatherOf4);
  for (const int rank : {0, 1, 2}) {
    expect_failure(rank, ErrorCode::kDeadline, "ranks 0, 2 did not come to a gather within 50 ms");
  }
}

TEST_F(HubOfSockets, NamesARankThatLeftBeforeAGather) {
  (void)start(2, /*shares_memory=*/true);
  send(1, {.kind = MessageKind::kLeave, .rank = 1});
  send(0, kGatherOf4);
  expect_failure(0, ErrorCode::kUnavailable, "rank 1 left the group before a gather");
}

TEST_F(HubOfSockets, RefusesGathersOfDifferentSizes) {
  (void)start(2, /*shares_memory=*/true);
  send(0, kGatherOf4);
  send(1, {.kind = MessageKind::kRaise, .rank = 1});
  for (const int rank : {0, 1}) EXPECT_EQ(receive(rank).kind, MessageKind::kRaise);
  send(1, {.kind = MessageKind::kGather, .bytes = 8, .total = 8});
  for (const int rank : {0, 1}) {
    const Message message = receive(rank);
    EXPECT_EQ(message.kind, MessageKind::kFail);
    const std::optional<Error> failure = receive_failure(socket(rank), message, soon());
    ASSERT_TRUE(failure);
    EXPECT_EQ(failure->code(), ErrorCode::kInvalidArgument);
  }
}

TEST_F(HubOfSockets, EndsWithRank0AndWithoutAFailure) {
  (void)start(2, /*shares_memory=*/true);
  send(0, {.kind = MessageKind::kLeave, .rank = 0});
  for (const int rank : {0, 1}) expect_end(rank);
}

}  // namespace
}  // namespace fovea::ranks
