// Callers of chance on one cache: what must hold whatever they do.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <list>
#include <random>
#include <thread>

#include "cache/row_cache.h"

namespace fovea {
namespace {

using Turn = RowCache::Turn;

constexpr int kKeys = 40;
constexpr std::int64_t kCapacity = 1000;

std::size_t bytes_of(int key) { return static_cast<std::size_t>(1 + key * key % 190); }

Embedding item_of(int key) {
  Embedding item;
  item.rows = key;
  item.data.resize(bytes_of(key));
  std::ranges::fill(item.data, static_cast<std::byte>(key));
  return item;
}

/// A store that knows how much it keeps.
class CountingStore {
 public:
  RowStore store() {
    return [this](std::span<const std::byte> rows) -> StoredRows {
      bytes_ += std::ssize(rows);
      const std::shared_ptr<const RowBytes> kept(new RowBytes(rows), [this](const RowBytes* gone) {
        bytes_ -= std::ssize(*gone);
        delete gone;
      });
      return [kept](std::span<std::byte> out) { std::ranges::copy(*kept, out.begin()); };
    };
  }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }

 private:
  std::atomic<std::int64_t> bytes_{0};
};

void expect_item(RowCache::Claim& claim, int key) {
  Embedding item;
  claim.read(item);
  EXPECT_EQ(item.rows, key);
  EXPECT_EQ(item.data, item_of(key).data);
}

TEST(RandomCallers, NeverFindMoreThanTheCapacityNorLoseWhatTheyHold) {
  CountingStore store;
  RowCache cache(kCapacity, store.store());
  std::mt19937 random(1);
  struct Held {
    int key;
    RowCache::Claim claim;
  };
  std::list<Held> held;
  for (int step = 0; step < 100'000; ++step) {
    const int key = static_cast<int>(random() % kKeys);
    RowCache::Claim claim = cache.claim(std::to_string(key));
    if (claim.turn() == Turn::kEncode) {
      if (random() % 8 == 0) {
        claim.fail(Error(ErrorCode::kCorruptData, "chance"));
      } else if (random() % 8 != 0) {
        claim.publish(item_of(key));
      }
    } else {
      held.push_back({key, std::move(claim)});
    }
    ASSERT_LE(store.bytes(), kCapacity);
    ASSERT_LE(cache.stats().bytes, kCapacity);
    if (held.size() > random() % 24) {
      const auto one = std::next(held.begin(), static_cast<std::ptrdiff_t>(random() % held.size()));
      expect_item(one->claim, one->key);
      held.erase(one);
    }
  }
  held.clear();
  const EncoderCacheStats stats = cache.stats();
  EXPECT_EQ(stats.bytes, store.bytes());
  EXPECT_EQ(stats.freeable_bytes, stats.bytes);
  EXPECT_GT(stats.evictions, 1000);
  EXPECT_GT(stats.bypasses, 0);
}

/// One item, as an engine fetches it. @return whether this caller encoded it.
bool fetch(RowCache& cache, int key, std::mt19937& random) {
  RowCache::Claim claim = cache.claim(std::to_string(key));
  if (claim.turn() == Turn::kWait) claim.wait();
  if (claim.turn() == Turn::kRead) expect_item(claim, key);
  if (claim.turn() != Turn::kEncode) return false;
  std::this_thread::yield();
  switch (random() % 8) {
    case 0: break;  // gives up
    case 1: claim.fail(Error(ErrorCode::kCorruptData, "chance")); break;
    default: claim.publish(item_of(key)); break;
  }
  return true;
}

TEST(RandomCallers, OnFourThreadsGetTheRowsOfTheirKeys) {
  CountingStore store;
  RowCache cache(kCapacity, store.store());
  constexpr int kCallers = 4;
  constexpr int kFetches = 3000;
  std::vector<std::jthread> callers;
  for (unsigned seed = 0; seed < kCallers; ++seed) {
    callers.emplace_back([&cache, seed] {
      std::mt19937 random(seed);
      for (int i = 0; i < kFetches; ++i) {
        (void)fetch(cache, static_cast<int>(random() % kKeys), random);
      }
    });
  }
  callers.clear();
  const EncoderCacheStats stats = cache.stats();
  EXPECT_EQ(stats.queries, kCallers * kFetches);
  EXPECT_EQ(stats.waiting, 0);
  EXPECT_LE(stats.bytes, kCapacity);
  EXPECT_EQ(stats.bytes, store.bytes());
  EXPECT_EQ(stats.freeable_bytes, stats.bytes);
}

}  // namespace
}  // namespace fovea
