// Which entries stay, and which go first.
#include "core/lru.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

namespace fovea {
namespace {

using Letters = Lru<std::string, int>;

/// Lets go what has to, and enters a value if there is room. @return what went.
std::vector<std::string> add(Letters& letters, const std::string& key, std::int64_t cost) {
  std::vector<std::string> gone;
  if (letters.make_room(cost, [&](const Letters::Entry& entry) { gone.push_back(entry.key); })) {
    letters.put(key, static_cast<int>(key.front()), cost);
  }
  return gone;
}

using Keys = std::vector<std::string>;

TEST(Lru, FindsWhatWasPut) {
  Letters letters(10);
  letters.put("a", 1, 4);
  ASSERT_NE(letters.find("a"), nullptr);
  EXPECT_EQ(letters.find("a")->value, 1);
  EXPECT_EQ(letters.find("b"), nullptr);
  EXPECT_EQ(letters.cost(), 4);
  EXPECT_EQ(letters.free(), 6);
  EXPECT_EQ(letters.size(), 1U);
}

TEST(Lru, TheOneUsedLongestAgoGoesFirst) {
  Letters letters(10);
  for (const char* const key : {"a", "b", "c"}) add(letters, key, 3);
  letters.use("a");
  (void)letters.find("b");  // no use
  EXPECT_EQ(add(letters, "d", 5), (Keys{"b", "c"}));
  EXPECT_EQ(letters.unpinned().front().key, "a");
}

TEST(Lru, NothingGoesForWhatWouldNotFit) {
  Letters letters(10);
  add(letters, "a", 6);
  EXPECT_EQ(add(letters, "b", 11), Keys{});
  EXPECT_EQ(letters.find("b"), nullptr);
  EXPECT_EQ(letters.cost(), 6);
}

TEST(Lru, PinnedEntriesStayUntilTheLastPinIsGone) {
  Letters letters(10);
  add(letters, "a", 6);
  letters.pin("a", 2);
  EXPECT_EQ(letters.freeable(), 4);
  letters.unpin("a");
  EXPECT_EQ(add(letters, "b", 5), Keys{});
  EXPECT_EQ(letters.find("b"), nullptr);
  letters.unpin("a");
  EXPECT_EQ(letters.freeable(), 10);
  EXPECT_EQ(add(letters, "b", 5), Keys{"a"});
}

TEST(Lru, AnEntryIsUsedWhenItsLastPinGoes) {
  Letters letters(10);
  for (const char* const key : {"a", "b"}) add(letters, key, 5);
  letters.pin("a");
  letters.unpin("a");
  EXPECT_EQ(add(letters, "c", 5), Keys{"b"});
}

TEST(Lru, AnotherValueOfAKeyKeepsItsPins) {
  Letters letters(10);
  add(letters, "a", 2);
  letters.pin("a");
  letters.put("a", 7, 5);
  EXPECT_EQ(letters.find("a")->value, 7);
  EXPECT_EQ(letters.find("a")->pins, 1);
  EXPECT_EQ(letters.cost(), 5);
  EXPECT_EQ(letters.freeable(), 5);
}

TEST(Lru, AnEntryMovesWithItsCostAndItsPins) {
  Letters near(10);
  Letters far(10);
  for (const char* const key : {"a", "b"}) add(near, key, 4);
  near.pin("a");
  far.take(near, "a");
  far.take(near, "b");
  EXPECT_EQ(near.size(), 0U);
  EXPECT_EQ(near.freeable(), 10);
  EXPECT_EQ(near.free(), 10);
  EXPECT_EQ(far.freeable(), 6);
  EXPECT_EQ(far.free(), 2);
  EXPECT_EQ(far.find("a")->pins, 1);
  EXPECT_EQ(far.unpinned().front().key, "b");
}

TEST(Lru, KnowsNoEntryThatIsGone) {
  Letters letters(10);
  add(letters, "a", 4);
  letters.pin("a");
  EXPECT_TRUE(letters.erase("a"));
  EXPECT_FALSE(letters.erase("a"));
  EXPECT_EQ(letters.pin("a"), nullptr);
  EXPECT_EQ(letters.freeable(), 10);
  add(letters, "b", 4);
  letters.clear();
  EXPECT_EQ(letters.find("b"), nullptr);
  EXPECT_EQ(letters.free(), 10);
}

TEST(Lru, WhatThrowsAsAnEntryLeavesKeepsIt) {
  Letters letters(10);
  add(letters, "a", 6);
  EXPECT_THROW(
      letters.make_room(5, [](const Letters::Entry&) { throw std::runtime_error("no memory"); }),
      std::runtime_error);
  EXPECT_NE(letters.find("a"), nullptr);
  EXPECT_EQ(letters.cost(), 6);
}

TEST(LruProperty, ItsSumsAreThoseOfItsEntries) {
  Lru<int, int> numbers(100);
  std::map<int, std::int64_t> pins;
  std::mt19937 random(1);
  for (int step = 0; step < 20'000; ++step) {
    const int key = static_cast<int>(random() % 20);
    switch (random() % 5) {
      case 0:
        if (numbers.pin(key) != nullptr) ++pins[key];
        break;
      case 1:
        if (pins[key] > 0 && numbers.unpin(key) != nullptr) --pins[key];
        break;
      case 2: (void)numbers.use(key); break;
      case 3:
        if (pins[key] == 0) numbers.erase(key);
        break;
      default:
        const std::int64_t cost = static_cast<std::int64_t>(random() % 30);
        const auto leave = [&](const auto& entry) { EXPECT_EQ(pins[entry.key], 0); };
        if (numbers.find(key) == nullptr && numbers.make_room(cost, leave)) {
          numbers.put(key, key, cost);
        }
    }
    std::int64_t free = 100;
    for (const auto& entry : numbers.unpinned()) free -= entry.cost;
    std::int64_t freeable = 100;
    for (const auto& entry : numbers.pinned()) freeable -= entry.cost;
    ASSERT_EQ(numbers.freeable(), freeable);
    ASSERT_EQ(numbers.free(), free + freeable - 100);
    ASSERT_GE(numbers.free(), 0);
    ASSERT_EQ(numbers.size(), numbers.unpinned().size() + numbers.pinned().size());
  }
}

}  // namespace
}  // namespace fovea
