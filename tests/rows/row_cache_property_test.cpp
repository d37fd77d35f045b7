// Callers of chance on memories of two devices and of the host, or of the host alone: what must
// hold whatever they do.
#include <gtest/gtest.h>

#include <array>
#include <list>
#include <random>
#include <thread>

#include "rows/tier_rows.h"

namespace fovea {
namespace {

using test::TierRows;
using Turn = RowCache::Turn;

constexpr int kKeys = 40;
constexpr std::int64_t kHostBytes = 20'000;

std::int64_t rows_of(int key) { return 1 + key * key % 190; }

/// With so many bytes of each device.
class RandomCallers : public ::testing::TestWithParam<std::int64_t> {
 protected:
  /// One caller with queues of its own.
  struct Caller {
    explicit Caller(RandomCallers& test, unsigned seed) : random(seed) {
      for (std::size_t i = 0; i < 2; ++i) queues[i] = test.devices_[i]->create_copy_stream();
    }
    std::mt19937 random;
    std::array<std::unique_ptr<Stream>, 2> queues;
  };

  void encode(RowCache::Claim& claim, int key, Caller& caller) {
    switch (caller.random() % 8) {
      case 0: return;  // gives up
      case 1: claim.fail(Error(ErrorCode::kCorruptData, "chance")); return;
      default: break;
    }
    const std::size_t device = caller.random() % 2;
    TierRows rows(rows_of(key), static_cast<float>(key));
    claim.describe({});
    claim.store(*devices_[device], *caller.queues[device], rows.view());
  }
  void read(RowCache::Claim& claim, int key, Caller& caller) {
    const std::size_t device = caller.random() % 2;
    if (caller.random() % 2 == 0) claim.restore(*devices_[device], *caller.queues[device]);
    TierRows out(rows_of(key), -1);
    test::copy(claim, *devices_[device], *caller.queues[device], out.view());
    ASSERT_TRUE(out.are(static_cast<float>(key))) << key;
  }
  void expect_within_capacity() const {
    const EncoderCacheStats stats = cache_.stats();
    ASSERT_LE(stats.device.bytes, 2 * GetParam());
    ASSERT_LE(stats.host.bytes, kHostBytes);
    ASSERT_EQ(stats.bytes, stats.device.bytes + stats.host.bytes);
  }

  std::unique_ptr<Kernels> kernels_ = make_cpu_kernels(CpuIsa::kPortable, 1);
  std::array<std::unique_ptr<Device>, 2> devices_{make_cpu_device(1, *kernels_),
                                                  make_cpu_device(1, *kernels_)};
  RowCache cache_{std::vector<Device*>{devices_[0].get(), devices_[1].get()}, GetParam(),
                  kHostBytes};
};

TEST_P(RandomCallers, NeverFindMoreThanTheCapacityNorLoseWhatTheyHold) {
  Caller caller(*this, 1);
  struct Held {
    int key;
    RowCache::Claim claim;
  };
  std::list<Held> held;
  for (int step = 0; step < 50'000; ++step) {
    const int key = static_cast<int>(caller.random() % kKeys);
    RowCache::Claim claim = cache_.claim(std::to_string(key));
    if (claim.turn() == Turn::kEncode) {
      encode(claim, key, caller);
    } else {
      held.push_back({key, std::move(claim)});
    }
    expect_within_capacity();
    if (held.size() > caller.random() % 24) {
      const auto one =
          std::next(held.begin(), static_cast<std::ptrdiff_t>(caller.random() % held.size()));
      read(one->claim, one->key, caller);
      held.erase(one);
    }
  }
  held.clear();
  const EncoderCacheStats stats = cache_.stats();
  EXPECT_EQ(stats.freeable_bytes, stats.bytes);
  EXPECT_EQ(stats.device.evictions > 1000, GetParam() > 0);
  EXPECT_GT(stats.host.evictions, 1000);
  EXPECT_GT(stats.host.hits, 1000);
  EXPECT_GT(stats.bypasses, 0);
}

TEST_P(RandomCallers, OnFourThreadsGetTheRowsOfTheirKeys) {
  constexpr int kCallers = 4;
  constexpr int kFetches = 2000;
  std::vector<std::jthread> callers;
  for (unsigned seed = 0; seed < kCallers; ++seed) {
    callers.emplace_back([this, seed] {
      Caller caller(*this, seed);
      for (int i = 0; i < kFetches; ++i) {
        const int key = static_cast<int>(caller.random() % kKeys);
        RowCache::Claim claim = cache_.claim(std::to_string(key));
        if (claim.turn() == Turn::kWait) claim.wait();
        if (claim.turn() == Turn::kRead) read(claim, key, caller);
        if (claim.turn() == Turn::kEncode) encode(claim, key, caller);
        if (i % 64 == 0) expect_within_capacity();
      }
    });
  }
  callers.clear();
  const EncoderCacheStats stats = cache_.stats();
  EXPECT_EQ(stats.queries, kCallers * kFetches);
  EXPECT_EQ(stats.waiting, 0);
  EXPECT_EQ(stats.freeable_bytes, stats.bytes);
}

INSTANTIATE_TEST_SUITE_P(BytesOfADevice, RandomCallers, ::testing::Values(0, 12'000));

}  // namespace
}  // namespace fovea
