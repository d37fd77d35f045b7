#include "serve/http/client_watch.h"

#include <gtest/gtest.h>

#include <memory>

#include "serve/http/stream_pair.h"

namespace fovea::serve {
namespace {

class ClientWatchTest : public testing::Test {
 protected:
  static constexpr std::size_t kMost = 4;

  void start() {
    watch_.start(owner_);
    pair_.poll();
  }

  test::StreamPair pair_;
  std::shared_ptr<Event> changed_ = std::make_shared<Event>(pair_.context.get_executor());
  ClientWatch watch_{*pair_.stream, changed_, kMost};
  std::shared_ptr<void> owner_ = std::make_shared<int>();
};

TEST_F(ClientWatchTest, TellsThatTheClientHasLeft) {
  start();
  EXPECT_FALSE(watch_.client_left());
  pair_.shut_sending();
  pair_.run(changed_->wait());
  EXPECT_TRUE(watch_.client_left());
  pair_.run(watch_.stop());
  EXPECT_TRUE(watch_.client_left());
}

TEST_F(ClientWatchTest, KeepsBytesOfTheNextRequestUpToTheLimit) {
  start();
  pair_.send("abcdef");
  pair_.shut_sending();
  pair_.run(changed_->wait());
  EXPECT_EQ(pair_.stream->input().view(), "abcd");
  EXPECT_FALSE(watch_.client_left()) << "there is more to read";
}

TEST_F(ClientWatchTest, StopsWithoutTakingTheClientForGone) {
  start();
  pair_.run(watch_.stop());
  EXPECT_FALSE(watch_.client_left());
  pair_.send("ab");
  EXPECT_EQ(pair_.run(pair_.stream->fill(8)).bytes, 2U) << "the stream can be read again";
  start();
  pair_.shut_sending();
  pair_.run(changed_->wait());
  EXPECT_TRUE(watch_.client_left()) << "and watched again";
}

TEST_F(ClientWatchTest, HoldsItsOwnerWhileItRuns) {
  start();
  EXPECT_GT(owner_.use_count(), 1);
  pair_.run(watch_.stop());
  pair_.poll();
  EXPECT_EQ(owner_.use_count(), 1);
}

TEST_F(ClientWatchTest, StopsAtOnceWhereItDoesNotRun) { pair_.run(watch_.stop()); }

}  // namespace
}  // namespace fovea::serve
