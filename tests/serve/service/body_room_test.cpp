#include "serve/service/body_room.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

namespace fovea::serve {
namespace {

TEST(BodyRoom, GrowsAndGoesAsAWhole) {
  Budget budget(100);
  {
    BodyRoom room(budget, nullptr);
    EXPECT_TRUE(room.grow(10));
    EXPECT_TRUE(room.grow(60));
    EXPECT_TRUE(room.grow(20));  // it has that
    EXPECT_EQ(budget.used(), 60);
    EXPECT_FALSE(room.grow(101));
    EXPECT_EQ(budget.used(), 60);
  }
  EXPECT_EQ(budget.used(), 0);
}

TEST(BodyRoom, GivesAClientNoMoreThanItLeavesForOthers) {
  Budget budget(1200);
  const auto one = std::make_shared<Client>();
  const auto two = std::make_shared<Client>();
  BodyRoom first(budget, one);
  BodyRoom second(budget, one);
  EXPECT_TRUE(first.grow(500));
  EXPECT_TRUE(second.grow(100));
  EXPECT_FALSE(second.grow(101));
  BodyRoom other(budget, two);
  EXPECT_TRUE(other.grow(300));
  EXPECT_FALSE(other.grow(301));
  EXPECT_EQ(one->body_bytes, 600);
  EXPECT_EQ(two->body_bytes, 300);
}

TEST(BodyRoom, CountsWhatRepliesTake) {
  Budget budget(1000);
  const std::optional<Budget::Ticket> replies = budget.try_take(800);
  BodyRoom room(budget, std::make_shared<Client>());
  EXPECT_TRUE(room.grow(100));
  EXPECT_FALSE(room.grow(101));
}

TEST(BodyRoom, LeavesRoomForTheNextClientHoweverManyThereAre) {
  Budget budget(1 << 20);
  std::vector<std::unique_ptr<BodyRoom>> rooms;
  for (int i = 0; i < 10; ++i) {
    const auto client = std::make_shared<Client>();
    rooms.push_back(std::make_unique<BodyRoom>(budget, client));
    std::size_t most = 0;
    while (rooms.back()->grow(most + 64)) most += 64;
    EXPECT_GT(most, 0) << i;
  }
}

}  // namespace
}  // namespace fovea::serve
