#include "ranks/transport/socket.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <thread>
#include <vector>

namespace fovea::ranks {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class Sockets : public ::testing::Test {
 protected:
  Sockets() {
    auto ends = socket_pair();
    a_ = std::move(ends.first);
    b_ = std::move(ends.second);
  }
  [[nodiscard]] static Clock::time_point soon() { return Clock::now() + seconds(60); }

  FileDescriptor a_;
  FileDescriptor b_;
};

TEST_F(Sockets, MoveMoreThanASocketHolds) {
  const std::vector<std::byte> sent(8 << 20, std::byte{5});
  std::jthread sender([&] { EXPECT_EQ(send_all(a_.get(), sent, soon()), Transfer::kDone); });
  std::vector<std::byte> received(sent.size());
  EXPECT_EQ(receive_all(b_.get(), received, soon()), Transfer::kDone);
  EXPECT_EQ(received, sent);
}

TEST_F(Sockets, AreLateWhenTheDeadlineComesFirst) {
  std::array<std::byte, 2> bytes{};
  EXPECT_EQ(receive_all(a_.get(), bytes, Clock::now()), Transfer::kTimedOut);
  const std::vector<std::byte> much(8 << 20);
  EXPECT_EQ(send_all(a_.get(), much, Clock::now()), Transfer::kTimedOut);
}

TEST_F(Sockets, AreClosedWhenTheOtherEndIs) {
  const std::array<std::byte, 1> byte{std::byte{7}};
  ASSERT_EQ(send_all(b_.get(), byte, soon()), Transfer::kDone);
  b_.reset();
  std::array<std::byte, 1> received{};
  EXPECT_EQ(receive_all(a_.get(), received, soon()), Transfer::kDone) << "what was sent before";
  EXPECT_EQ(received, byte);
  EXPECT_EQ(receive_all(a_.get(), received, soon()), Transfer::kClosed);
  EXPECT_EQ(send_all(a_.get(), byte, soon()), Transfer::kClosed);
  EXPECT_EQ(receive_now(a_.get(), received), -1);
}

TEST_F(Sockets, GiveWhatIsThereWithoutWaiting) {
  std::array<std::byte, 4> received{};
  EXPECT_EQ(receive_now(a_.get(), received), 0);
  const std::array<std::byte, 3> sent{};
  ASSERT_EQ(send_all(b_.get(), sent, soon()), Transfer::kDone);
  EXPECT_EQ(receive_now(a_.get(), received), 3);
}

TEST_F(Sockets, CarryAnOpenFile) {
  const FileDescriptor file(open("/dev/null", O_RDONLY | O_CLOEXEC));
  const std::array<std::byte, 1> byte{};
  ASSERT_EQ(send_all(a_.get(), byte, soon(), file.get()), Transfer::kDone);
  std::array<std::byte, 1> received{};
  FileDescriptor came;
  ASSERT_EQ(receive_all(b_.get(), received, soon(), &came), Transfer::kDone);
  EXPECT_TRUE(came.is_open());
  EXPECT_NE(came.get(), file.get());
}

TEST(PollTimeout, IsInMillisecondsThatPollTakes) {
  EXPECT_EQ(poll_timeout(Clock::time_point::max()), -1);
  EXPECT_EQ(poll_timeout(Clock::now() - seconds(1)), 0);
  EXPECT_GT(poll_timeout(Clock::now() + std::chrono::hours(1)), 0);
  EXPECT_EQ(poll_timeout(Clock::now() + std::chrono::hours(24 * 365)),
            std::numeric_limits<int>::max());
}

}  // namespace
}  // namespace fovea::ranks
