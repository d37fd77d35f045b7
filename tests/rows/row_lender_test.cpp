// Rows that another process reads where they lie: what it is told about them, and that they stay.
#include "rows/row_lender.h"

#include <gtest/gtest.h>

#include <cstring>

#include "rows/tier_rows.h"
#include "support/expect_error.h"

namespace fovea {
namespace {

using test::TierRows;

/// Of a device, or of two, whose work runs as late as it may.
class RowLenderTest : public ::testing::Test {
 protected:
  using Keys = std::vector<std::string>;
  static constexpr std::int64_t kRows = 64;  // of every item
  static constexpr std::int64_t kBytes = kRows * TierRows::kRowBytes;

  void make(std::int64_t device_items, std::int64_t host_items, bool with_other = false) {
    std::vector<Device*> devices{&device_};
    if (with_other) devices.push_back(&other_);
    cache_.emplace(devices, device_items * kBytes, host_items * kBytes);
    lender_.emplace(*cache_, [this](const Device& device, const Buffer& memory) {
      named_.push_back(memory.data());
      return DeviceMemoryName{.gpu = &device == &device_ ? "GPU-a" : "GPU-b",
                              .handle = {1, 2, 3},
                              .bytes = memory.bytes()};
    });
  }
  void store(const std::string& key, float value) { store(key, value, device_, *tower_); }
  void store(const std::string& key, float value, Device& device, Stream& queue) {
    stored_.push_back(std::make_unique<TierRows>(kRows, value));
    test::store(*cache_, key, device, queue, stored_.back()->view());
  }
  [[nodiscard]] LentRows lend(const Keys& keys) { return lender_->lend(keys); }
  /// What another process reads, now.
  void expect_rows(const LentRows& lent, std::size_t item, float value) {
    ASSERT_TRUE(lent.items[item]);
    const LentItem& place = *lent.items[item];
    EXPECT_EQ(place.rows, kRows);
    EXPECT_EQ(place.width, TierRows::kWidth);
    EXPECT_EQ(place.dtype, RowDType::kFloat32);
    ASSERT_LE(place.offset_bytes + kBytes, lent.memories[place.memory].bytes);
    TierRows here(kRows, -1);
    std::memcpy(here.view().data, named_[place.memory] + place.offset_bytes, kBytes);
    EXPECT_TRUE(here.are(value)) << value;
  }

  std::unique_ptr<Kernels> kernels_ = make_cpu_kernels(CpuIsa::kPortable, 1);
  test::DeferredDevice device_{*kernels_, test::Schedule::kLast};
  test::DeferredDevice other_{*kernels_, test::Schedule::kLast};
  std::unique_ptr<Stream> tower_ = device_.create_stream();
  std::vector<std::unique_ptr<TierRows>> stored_;
  std::vector<const std::byte*> named_;
  std::optional<RowCache> cache_;
  std::optional<RowLender> lender_;
};

TEST_F(RowLenderTest, SaysWhereRowsLieWhenTheyAreThere) {
  make(4, 0);
  store("a", 1);
  store("b", 2);
  const LentRows lent = lend({"b", "a"});
  expect_rows(lent, 0, 2);
  expect_rows(lent, 1, 1);
  ASSERT_EQ(lent.memories.size(), 1U);
  EXPECT_EQ(lent.memories[0].gpu, "GPU-a");
  EXPECT_EQ(lent.memories[0].bytes, static_cast<std::size_t>(4 * kBytes));
  EXPECT_EQ(lent.memories[0].handle, (std::vector<std::uint8_t>{1, 2, 3}));
}

TEST_F(RowLenderTest, LendsNothingToWhoeverMustNotWaitForIt) {
  make(2, 0);
  store("a", 3);
  EXPECT_FALSE(lender_->try_lend(Keys{"a"})) << "its copy has not run";
  EXPECT_TRUE(lender_->try_lend(Keys{"nothing"}));
  (void)lend({"a"});
  const std::optional<LentRows> lent = lender_->try_lend(Keys{"x", "a"});
  ASSERT_TRUE(lent);
  EXPECT_FALSE(lent->items[0]);
  expect_rows(*lent, 1, 3);
  EXPECT_NE(lent->pins, nullptr);
}

TEST_F(RowLenderTest, NamesTheMemoryOnce) {
  make(4, 0);
  (void)lend({});
  (void)lend({});
  EXPECT_EQ(named_.size(), 1U);
}

TEST_F(RowLenderTest, ARefusalOfTheDeviceIsAskedForAgain) {
  make(4, 0);
  int calls = 0;
  RowLender lender(*cache_, [&calls](const Device&, const Buffer&) -> DeviceMemoryName {
    ++calls;
    throw Error(ErrorCode::kUnsupported, "not here");
  });
  for (int call = 0; call < 2; ++call) {
    test::expect_error(ErrorCode::kUnsupported, "not here", [&] { (void)lender.lend({}); });
  }
  EXPECT_EQ(calls, 2);
}

TEST_F(RowLenderTest, HasNothingOfKeysThatNobodyKnowsOrIsEncoding) {
  make(4, 0);
  store("a", 1);
  const RowCache::Claim encoding = cache_->claim("b");
  const LentRows lent = lend({"x", "a", "b"});
  EXPECT_FALSE(lent.items[0]);
  EXPECT_TRUE(lent.items[1]);
  EXPECT_FALSE(lent.items[2]);
  EXPECT_EQ(cache_->stats().queries, 2) << "lending is no query: those of store() and of \"b\"";
}

TEST_F(RowLenderTest, LentRowsStayWhileTheyArePinned) {
  make(2, 0);
  store("a", 1);
  store("b", 2);
  {
    const LentRows lent = lend({"a"});
    store("c", 3);  // "b" has to go, although "a" was stored before
    store("d", 4);
    tower_->synchronize();
    expect_rows(lent, 0, 1);
    const LentRows again = lend({"a", "b"});
    EXPECT_TRUE(again.items[0]);
    EXPECT_FALSE(again.items[1]);
  }
  store("e", 5);
  store("f", 6);
  EXPECT_FALSE(lend({"a"}).items[0]) << "nothing holds it any more";
}

TEST_F(RowLenderTest, WhatIsLentTwiceStaysForBoth) {
  make(1, 0);
  store("a", 1);
  LentRows first = lend({"a", "a"});
  const LentRows second = lend({"a"});
  first.pins.reset();
  store("b", 2);
  tower_->synchronize();
  expect_rows(second, 0, 1);
}

TEST_F(RowLenderTest, RowsInMemoryOfTheHostStayThere) {
  make(1, 2);
  store("a", 1);
  store("b", 2);  // "a" leaves the device
  const LentRows lent = lend({"a", "b"});
  EXPECT_FALSE(lent.items[0]);
  EXPECT_EQ(cache_->stats().host.items, 1);
  expect_rows(lent, 1, 2);
}

TEST_F(RowLenderTest, NamesTheDeviceOfEachItem) {
  make(2, 0, true);
  const std::unique_ptr<Stream> queue = other_.create_stream();
  store("a", 1, other_, *queue);
  store("b", 2);
  const LentRows lent = lend({"a", "b"});
  EXPECT_EQ(lent.memories[lent.items[0]->memory].gpu, "GPU-b");
  EXPECT_EQ(lent.memories[lent.items[1]->memory].gpu, "GPU-a");
  expect_rows(lent, 0, 1);
  expect_rows(lent, 1, 2);
}

}  // namespace
}  // namespace fovea
