// The books of the row cache while memory runs out: no pin without a claim.
#include <gtest/gtest.h>

#include <functional>
#include <new>
#include <optional>
#include <string>

#include "rows/tier_rows.h"
#include "support/allocations.h"

namespace fovea {
namespace {

using test::FailingAllocation;
using test::TierRows;
using Turn = RowCache::Turn;

const std::string kKey(100, 'v');  // longer than a string holds without memory

/// Facts of a video, which take memory to copy.
Embedding video() {
  Embedding item;
  item.modality = Modality::kVideo;
  item.timestamps = {0, 0.5, 1};
  return item;
}

class RowCacheWithoutMemory : public ::testing::Test {
 protected:
  void store(RowCache::Claim& claim) {
    claim.describe(video_);
    claim.store(*device_, *queue_, rows_.view());
  }
  /// Calls with the first allocation failing, the second, and so on, until none does.
  /// @param failed called after each that has.
  static void fail_each(const std::function<void()>& call, const std::function<void()>& failed) {
    for (std::int64_t nth = 1;; ++nth) {
      bool has_failed = false;
      {
        const FailingAllocation failing(nth, FailingAllocation::Lasts::kOnce);
        try {
          call();
        } catch (const std::bad_alloc&) {
          has_failed = true;
        }
        if (!failing.happened()) break;
      }
      if (has_failed) failed();
    }
  }
  /// Has a claim, that another one waits for, keep rows as `keep` does, until that works.
  void leave_to_those_who_wait(const std::function<void(RowCache::Claim&)>& keep) {
    int num_failed = 0;
    std::optional<RowCache> cache;
    std::optional<RowCache::Claim> first;
    std::optional<RowCache::Claim> second;
    const auto begin = [&] {
      second.reset();
      first.reset();
      cache.emplace(devices_, 0, 1 << 12);
      first.emplace(cache->claim(kKey));
      second.emplace(cache->claim(kKey));
    };
    begin();
    fail_each([&] { keep(*first); },
              [&] {
                ++num_failed;
                first.reset();
                second->wait();
                ASSERT_EQ(second->turn(), Turn::kEncode);
                store(*second);
                second.reset();
                expect_all_freeable(*cache);
                begin();
              });
    EXPECT_GT(num_failed, 0);
    second->wait();
    EXPECT_EQ(second->turn(), Turn::kRead);
  }
  static void expect_all_freeable(const RowCache& cache) {
    const EncoderCacheStats stats = cache.stats();
    EXPECT_EQ(stats.items, 1);
    EXPECT_EQ(stats.freeable_bytes, stats.bytes);
    EXPECT_EQ(stats.waiting, 0);
  }

  std::unique_ptr<Kernels> kernels_ = make_cpu_kernels(CpuIsa::kPortable, 1);
  std::unique_ptr<Device> device_ = make_cpu_device(1, *kernels_);
  std::unique_ptr<Stream> queue_ = device_->create_copy_stream();
  Device* const devices_[1] = {device_.get()};
  const Embedding video_ = video();
  TierRows rows_{16, 1};
};

TEST_F(RowCacheWithoutMemory, AClaimThatFailsHasNoPin) {
  RowCache cache(devices_, 0, 1 << 12);
  {
    RowCache::Claim first = cache.claim(kKey);
    store(first);
  }
  const auto expect_no_pin = [&] { expect_all_freeable(cache); };
  fail_each([&] { (void)cache.claim(kKey); }, expect_no_pin);
  fail_each([&] { (void)cache.find(kKey); }, expect_no_pin);
  expect_no_pin();
}

TEST_F(RowCacheWithoutMemory, RowsThatWereNotFilledInPinNothingForThoseWhoWait) {
  leave_to_those_who_wait([this](RowCache::Claim& claim) {
    (void)claim.fill(*device_, *queue_, video_, rows_.view());
  });
}

TEST_F(RowCacheWithoutMemory, RowsThatWereNotStoredPinNothingForThoseWhoWait) {
  leave_to_those_who_wait([this](RowCache::Claim& claim) { store(claim); });
}

}  // namespace
}  // namespace fovea
