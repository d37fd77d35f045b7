// Rows in memory of a device whose queues run as late as they may: what is missing from their order
// shows in the rows.
#include <gtest/gtest.h>

#include "rows/tier_rows.h"

namespace fovea {
namespace {

using test::copy;
using test::TierRows;

constexpr std::int64_t kRows = 64;  // of every item
constexpr std::int64_t kBytes = kRows * TierRows::kRowBytes;

class RowCacheOrder : public ::testing::TestWithParam<test::Schedule> {
 protected:
  [[nodiscard]] RowCache cache_of(std::int64_t device_items, std::int64_t host_items) {
    return {std::vector<Device*>{&device_}, device_items * kBytes, host_items * kBytes};
  }
  /// Stores an item; its rows stay until the end.
  void store(RowCache& cache, const std::string& key, float value) {
    stored_.push_back(std::make_unique<TierRows>(kRows, value));
    test::store(cache, key, device_, *tower_, stored_.back()->view());
  }
  void expect(RowCache& cache, const std::string& key, float value) {
    const RowCache::Claim claim = cache.claim(key);
    ASSERT_EQ(claim.turn(), RowCache::Turn::kRead);
    copy(claim, device_, *reader_, out_.view());
    reader_->synchronize();
    EXPECT_TRUE(out_.are(value)) << key;
  }

  std::unique_ptr<Kernels> kernels_ = make_cpu_kernels(CpuIsa::kPortable, 1);
  test::DeferredDevice device_{*kernels_, GetParam()};
  std::unique_ptr<Stream> tower_ = device_.create_stream();
  std::unique_ptr<Stream> reader_ = device_.create_copy_stream();
  std::vector<std::unique_ptr<TierRows>> stored_;
  TierRows out_{kRows, -1};
};

TEST_P(RowCacheOrder, RowsAreReadBehindTheirWrite) {
  RowCache cache = cache_of(1, 0);
  store(cache, "a", 1);
  expect(cache, "a", 1);
}

TEST_P(RowCacheOrder, WhatACopyStillReadsIsNotOverwritten) {
  std::atomic<std::int64_t> waits = 0;
  const auto late = std::make_unique<test::DeferredStream>(false, waits);
  RowCache cache = cache_of(1, 0);
  store(cache, "a", 1);
  {
    const RowCache::Claim claim = cache.claim("a");
    copy(claim, device_, *late, out_.view());
  }
  store(cache, "b", 2);
  tower_->synchronize();
  EXPECT_TRUE(out_.are(1));
  late->synchronize();
  EXPECT_TRUE(out_.are(1));
  expect(cache, "b", 2);
  EXPECT_EQ(cache.stats().evictions, 1);
}

TEST_P(RowCacheOrder, RowsReachTheHostBeforeOthersTakeTheirPlace) {
  RowCache cache = cache_of(1, 2);
  store(cache, "a", 1);
  store(cache, "b", 2);
  store(cache, "c", 3);
  tower_->synchronize();
  expect(cache, "a", 1);
  expect(cache, "b", 2);
  expect(cache, "c", 3);
  const EncoderCacheStats stats = cache.stats();
  EXPECT_EQ(stats.evictions, 0);
  EXPECT_EQ(stats.device.evictions, 2);
  EXPECT_EQ(stats.host.items, 2);
  EXPECT_EQ(stats.host.hits, 2);
}

TEST_P(RowCacheOrder, RowsComeBackFromTheHost) {
  RowCache cache = cache_of(1, 1);
  store(cache, "a", 1);
  store(cache, "b", 2);  // "a" goes to the host
  {
    RowCache::Claim claim = cache.claim("a");
    EXPECT_EQ(claim.slot().device(), nullptr);
    claim.restore(device_, *reader_);  // without room for "b" on the host, which holds "a" still
    EXPECT_EQ(claim.slot().device(), &device_);
    copy(claim, device_, *reader_, out_.view());
  }
  reader_->synchronize();
  EXPECT_TRUE(out_.are(1));
  expect(cache, "a", 1);
  EXPECT_EQ(cache.stats().device.hits, 1);
}

TEST_P(RowCacheOrder, TheHostWaitsForNothing) {
  RowCache cache = cache_of(2, 2);
  for (int turn = 0; turn < 3; ++turn) {
    for (const char* const key : {"a", "b", "c", "d"}) {
      RowCache::Claim claim = cache.claim(key);
      if (claim.turn() == RowCache::Turn::kEncode) {
        stored_.push_back(std::make_unique<TierRows>(kRows, static_cast<float>(*key)));
        claim.describe({});
        claim.store(device_, *tower_, stored_.back()->view());
      } else {
        claim.restore(device_, *reader_);
        copy(claim, device_, *reader_, out_.view());
      }
    }
  }
  EXPECT_EQ(device_.host_waits(), 0);
  for (const char* const key : {"a", "b", "c", "d"}) expect(cache, key, static_cast<float>(*key));
}

INSTANTIATE_TEST_SUITE_P(Schedules, RowCacheOrder,
                         ::testing::Values(test::Schedule::kLast, test::Schedule::kCopyFirst));

}  // namespace
}  // namespace fovea
