// A member by itself: what it does with the messages of a hub that is a bare socket here.
#include "ranks/group/member.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <thread>

#include "support/expect_error.h"

namespace fovea::ranks {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// Rank 1 of 2, whose pieces travel with the messages.
class MemberOfAGroup : public ::testing::Test {
 protected:
  void SetUp() override {
    auto [hub, own] = socket_pair();
    hub_ = std::move(hub);
    own_ = std::move(own);
  }
  /// Joins the group after the hub has sent `message`.
  void join(const Message& message = {.kind = MessageKind::kWelcome, .size = 2}) {
    send(message);
    member_ = std::make_unique<Member>(1, options_, std::move(own_), nullptr);
  }
  [[nodiscard]] static Clock::time_point soon() { return Clock::now() + seconds(60); }
  void send(const Message& message, std::span<const std::byte> bytes = {}) const {
    EXPECT_EQ(send_all(hub_.get(), bytes_of(message), soon()), Transfer::kDone);
    EXPECT_EQ(send_all(hub_.get(), bytes, soon()), Transfer::kDone);
  }
  [[nodiscard]] Message receive() const {
    Message message;
    EXPECT_EQ(receive_message(hub_.get(), message, soon()), Transfer::kDone);
    return message;
  }

  GroupOptions options_{.size = 2, .time_limit = seconds(60), .shares_memory = false};
  FileDescriptor hub_;
  FileDescriptor own_;
  std::unique_ptr<Member> member_;
};

TEST_F(MemberOfAGroup, JoinsWithTheWelcomeOnly) {
  test::expect_error(ErrorCode::kUnavailable, "rank 0 has ended or left the group",
                     [&] { join({.kind = MessageKind::kGathered}); });
}

TEST_F(MemberOfAGroup, DoesNotJoinAGroupThatHasFailed) {
  send_failure(hub_.get(), Error(ErrorCode::kDeadline, "rank 1 did not come"), soon());
  test::expect_error(ErrorCode::kDeadline, "rank 1 did not come", [&] {
    member_ = std::make_unique<Member>(1, options_, std::move(own_), nullptr);
  });
}

TEST_F(MemberOfAGroup, SendsItsPieceAndTakesThoseOfAll) {
  join();
  std::jthread hub([&] {
    const Message message = receive();
    EXPECT_EQ(message.kind, MessageKind::kGather);
    EXPECT_EQ(message.rank, 1);
    EXPECT_EQ(message.total, 2U);
    std::vector<std::byte> piece(message.bytes);
    EXPECT_EQ(receive_all(hub_.get(), piece, soon()), Transfer::kDone);
    EXPECT_EQ(piece, (std::vector{std::byte{3}, std::byte{4}}));
    send({.kind = MessageKind::kGathered, .bytes = 2, .total = 2},
         std::vector{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}});
  });
  std::vector<std::byte> all(4);
  member_->all_gather(std::vector{std::byte{3}, std::byte{4}}, all);
  EXPECT_EQ(all, (std::vector{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}}));
}

TEST_F(MemberOfAGroup, WaitsForPiecesThatTravelBehindTheLastRank) {
  options_.time_limit = milliseconds(1'500);
  join();
  std::jthread hub([&] {
    (void)receive();
    std::vector<std::byte> piece(1);
    EXPECT_EQ(receive_all(hub_.get(), piece, soon()), Transfer::kDone);
    // The last rank has come in time, and its piece after 2 s more.
    std::this_thread::sleep_for(options_.time_limit + milliseconds(2'200));
    send({.kind = MessageKind::kGathered, .bytes = 1, .total = 1},
         std::vector{std::byte{1}, std::byte{2}});
  });
  std::vector<std::byte> all(2);
  EXPECT_NO_THROW(member_->all_gather(std::vector{std::byte{2}}, all));
  EXPECT_EQ(all, (std::vector{std::byte{1}, std::byte{2}}));
}

TEST_F(MemberOfAGroup, StopsRaisedWhenAnotherRankRaises) {
  join();
  std::promise<void> stopped;
  const std::stop_callback on_stop(member_->raised(), [&] { stopped.set_value(); });
  send({.kind = MessageKind::kRaise});
  stopped.get_future().get();
  EXPECT_FALSE(member_->ended().stop_requested());
  member_->raise();
  EXPECT_EQ(receive().kind, MessageKind::kRaise) << "and tells the hub of its own";
}

TEST_F(MemberOfAGroup, ThrowsWhatEndedTheGroupInEveryLaterCall) {
  join();
  std::promise<void> stopped;
  const std::stop_callback on_stop(member_->ended(), [&] { stopped.set_value(); });
  send_failure(hub_.get(), Error(ErrorCode::kDevice, "rank 0: no GPU"), soon());
  stopped.get_future().get();
  EXPECT_TRUE(member_->raised().stop_requested());
  for (int call = 0; call < 2; ++call) {
    test::expect_error(ErrorCode::kDevice, "rank 0: no GPU", [&] { member_->all_gather({}, {}); });
  }
}

TEST_F(MemberOfAGroup, SeesThatTheHubIsGone) {
  join();
  hub_.reset();
  test::expect_error(ErrorCode::kUnavailable, "rank 0 has ended or left the group",
                     [&] { member_->all_gather({}, {}); });
}

TEST_F(MemberOfAGroup, ThrowsWhatTheHubAnswersWhenItAborts) {
  join();
  std::jthread hub([&] {
    const Message message = receive();
    EXPECT_EQ(message.kind, MessageKind::kFail);
    EXPECT_TRUE(receive_failure(hub_.get(), message, soon()));
    send_failure(hub_.get(), Error(ErrorCode::kIo, "rank 0: came first"), soon());
  });
  test::expect_error(ErrorCode::kIo, "rank 0: came first",
                     [&] { member_->abort(Error(ErrorCode::kDevice, "no GPU")); });
}

TEST_F(MemberOfAGroup, LeavesWhenItIsDestroyed) {
  join();
  member_.reset();
  EXPECT_EQ(receive().kind, MessageKind::kLeave);
}

}  // namespace
}  // namespace fovea::ranks
