#include "serve/media/fair_tasks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace fovea::serve {
namespace {

using testing::ElementsAre;

/// Tasks that begin at once, on the thread that lets them, and hold their places.
class FairTasksTest : public testing::Test {
 protected:
  void TearDown() override {
    tasks_.end();
    places_.clear();
  }
  bool add(const std::string& client) {
    return tasks_.add(client, [this, client](std::shared_ptr<void> place) {
      begun_.push_back(client);
      places_.push_back(std::move(place));
    });
  }
  void add(const std::string& client, int count) {
    for (int i = 0; i < count; ++i) EXPECT_TRUE(add(client));
  }
  [[nodiscard]] std::int64_t begun(const std::string& client) const {
    return std::ranges::count(begun_, client);
  }

  FairTasks tasks_{8, 100, [](const std::function<void()>& task) { task(); }};
  std::vector<std::string> begun_;
  std::vector<std::shared_ptr<void>> places_;
};

TEST_F(FairTasksTest, LeavePlacesForOtherClients) {
  add("one", 20);
  EXPECT_EQ(begun("one"), 4);
  add("two", 20);
  EXPECT_EQ(begun("two"), 2);
  add("three", 20);
  EXPECT_EQ(begun("three"), 1);
  add("four", 1);
  EXPECT_EQ(begun("four"), 1);
  add("five", 1);  // now all places are taken
  EXPECT_EQ(begun("five"), 0);
}

TEST_F(FairTasksTest, BeginThoseThatWaitInTurns) {
  add("one", 20);
  add("two", 3);
  begun_.clear();
  places_.front().reset();  // of one
  places_.at(1).reset();
  EXPECT_THAT(begun_, ElementsAre("two", "one"));
}

TEST_F(FairTasksTest, CountAPlaceUntilTheLastOfATaskLetsItGo) {
  add("one", 5);
  const std::shared_ptr<void> left_behind = places_.front();
  places_.front().reset();
  EXPECT_EQ(begun("one"), 4);
  places_.at(1).reset();
  EXPECT_EQ(begun("one"), 5);
}

TEST_F(FairTasksTest, GiveAllPlacesToNobodysTasks) {
  add("", 20);
  EXPECT_EQ(begun(""), 8);
}

TEST_F(FairTasksTest, RefuseAClientThatHasHalfOfAllThatMayWait) {
  add("one", 50);
  EXPECT_FALSE(add("one"));
  add("two", 50);
  EXPECT_FALSE(add("three"));
}

TEST_F(FairTasksTest, BeginAllInTheEnd) {
  add("one", 20);
  tasks_.end();
  EXPECT_EQ(begun("one"), 20);
}

TEST(FairTasks, LoseNoTaskWithoutMemoryToBeginIt) {
  bool lacks_memory = true;
  FairTasks tasks(1, 10, [&](const std::function<void()>& task) {
    if (lacks_memory) throw std::bad_alloc();
    task();
  });
  std::vector<std::shared_ptr<void>> places;
  const auto keep = [&](std::shared_ptr<void> place) { places.push_back(std::move(place)); };
  EXPECT_TRUE(tasks.add("", keep));
  ASSERT_EQ(places.size(), 1U);
  EXPECT_TRUE(tasks.add("", keep));
  EXPECT_EQ(places.size(), 1U) << "it holds the only place";
  std::exchange(places, {}).clear();
  EXPECT_EQ(places.size(), 1U) << "begun when the place was given back";
  lacks_memory = false;
  std::exchange(places, {}).clear();
  EXPECT_TRUE(tasks.add("", keep));
  EXPECT_EQ(places.size(), 1U);
  places.clear();
}

}  // namespace
}  // namespace fovea::serve
