#include "ranks/transport/message.h"

#include <gtest/gtest.h>

namespace fovea::ranks {
namespace {

TEST(Failure, OfAnotherProcessMovesNoTextOfATerminal) {
  const auto [sender, receiver] = socket_pair();
  const Clock::time_point soon = Clock::now() + std::chrono::seconds(60);
  send_failure(sender.get(), Error(ErrorCode::kDevice, "a\x1b[31m\nb\u009b2J\u202e\xff"), soon);
  Message message;
  ASSERT_EQ(receive_message(receiver.get(), message, soon), Transfer::kDone);
  const std::optional<Error> failure = receive_failure(receiver.get(), message, soon);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->code(), ErrorCode::kDevice);
  EXPECT_STREQ(failure->what(), "a?[31m?b?2J??");
}

}  // namespace
}  // namespace fovea::ranks
