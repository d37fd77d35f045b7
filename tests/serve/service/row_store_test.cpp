#include "serve/service/row_store.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace fovea::serve {
namespace {

std::shared_ptr<const Embedding> stored_rows_of(std::size_t bytes) {
  auto item = std::make_shared<Embedding>();
  item->rows = static_cast<std::int64_t>(bytes);
  item->width = 1;
  item->data.resize(bytes);
  return item;
}

/// Room for `count` items of 1 MB, but not for one more.
std::int64_t room_for(std::int64_t count) { return count * 1'000'000 + 500'000; }

TEST(RowStore, FindsWhatWasPut) {
  RowStore store(room_for(2));
  const std::shared_ptr<const Embedding> item = stored_rows_of(1'000'000);
  EXPECT_TRUE(store.put("a", item));
  EXPECT_EQ(store.find("a"), item);
  EXPECT_EQ(store.find("b"), nullptr);
  const RowStoreStats stats = store.stats();
  EXPECT_EQ(stats.entries, 1);
  EXPECT_GE(stats.bytes, 1'000'000);
  EXPECT_EQ(stats.capacity_bytes, room_for(2));
  EXPECT_EQ(stats.hits, 1);
  EXPECT_EQ(stats.misses, 1);
}

TEST(RowStore, DropsWhatWasNotUsedForLongest) {
  RowStore store(room_for(2));
  store.put("a", stored_rows_of(1'000'000));
  store.put("b", stored_rows_of(1'000'000));
  EXPECT_NE(store.find("a"), nullptr);  // b is the older now
  store.put("c", stored_rows_of(1'000'000));
  EXPECT_EQ(store.find("b"), nullptr);
  EXPECT_NE(store.find("a"), nullptr);
  EXPECT_NE(store.find("c"), nullptr);
  EXPECT_EQ(store.stats().evictions, 1);
}

TEST(RowStore, ReplacesTheItemOfAName) {
  RowStore store(room_for(1));
  store.put("a", stored_rows_of(1'000'000));
  const std::shared_ptr<const Embedding> second = stored_rows_of(900'000);
  EXPECT_TRUE(store.put("a", second));
  EXPECT_EQ(store.find("a"), second);
  EXPECT_EQ(store.stats().entries, 1);
  EXPECT_EQ(store.stats().evictions, 0);
}

TEST(RowStore, RefusesWhatIsLargerThanItself) {
  RowStore store(room_for(1));
  store.put("a", stored_rows_of(1'000'000));
  store.put("b", stored_rows_of(1000));
  EXPECT_FALSE(store.put("b", stored_rows_of(2'000'000)));
  EXPECT_EQ(store.find("b"), nullptr) << "the old rows are not those of the name any more";
  EXPECT_NE(store.find("a"), nullptr);
}

TEST(RowStore, KeepsAnItemForWhoeverHoldsIt) {
  RowStore store(room_for(1));
  store.put("a", stored_rows_of(1'000'000));
  const std::shared_ptr<const Embedding> held = store.find("a");
  EXPECT_TRUE(store.erase("a"));
  EXPECT_FALSE(store.erase("a"));
  EXPECT_EQ(held->data.size(), 1'000'000U);
}

TEST(RowStore, IsEmptyAfterClear) {
  RowStore store(room_for(2));
  store.put("a", stored_rows_of(1000));
  store.clear();
  EXPECT_EQ(store.find("a"), nullptr);
  EXPECT_EQ(store.stats().bytes, 0);
  EXPECT_TRUE(store.put("a", stored_rows_of(1000)));
}

TEST(RowStore, CountsRightAmongThreads) {
  RowStore store(room_for(3));
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&store, t] {
        for (int i = 0; i < 50; ++i) {
          const std::string name = std::to_string((t + i) % 5);
          store.put(name, stored_rows_of(1'000'000));
          (void)store.find(name);
          if (i % 7 == 0) store.erase(name);
        }
      });
    }
  }
  const RowStoreStats stats = store.stats();
  EXPECT_LE(stats.bytes, stats.capacity_bytes);
  EXPECT_LE(stats.entries, 3);
  EXPECT_EQ(stats.hits + stats.misses, 200);
}

}  // namespace
}  // namespace fovea::serve
