#include "rows/shared/shared_rows.h"

#include <gtest/gtest.h>

#include <latch>
#include <map>

#include "core/check.h"

namespace fovea {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;

/// A place in memory that does as it is told.
class Memory final : public RowPlace {
 public:
  std::vector<std::optional<RowBytes>> get(std::span<const std::string> names) override {
    ++asked;
    if (hangs) hang();
    if (fails) throw Error(ErrorCode::kIo, "it is broken");
    const std::lock_guard lock(mutex_);
    std::vector<std::optional<RowBytes>> found;
    for (const std::string& name : names) {
      const auto kept = kept_.find(name);
      found.push_back(kept == kept_.end() ? std::nullopt : std::optional(kept->second));
    }
    return found;
  }
  void put(const std::string& name, std::span<const std::byte> bytes) override {
    if (hangs) hang();
    if (is_full) throw Error(ErrorCode::kUnavailable, "it is full");
    const std::lock_guard lock(mutex_);
    kept_[name] = RowBytes(bytes);
  }
  void spoil() {
    const std::lock_guard lock(mutex_);
    for (auto& [name, bytes] : kept_) bytes.data()[bytes.size() - 1] ^= std::byte{1};
  }
  std::vector<std::string> names() {
    const std::lock_guard lock(mutex_);
    std::vector<std::string> names;
    for (const auto& [name, bytes] : kept_) names.push_back(name);
    return names;
  }
  void let_go() {
    hangs = false;
    hangs.notify_all();
  }

  std::atomic<int> asked = 0;
  std::atomic<bool> hangs = false;
  std::atomic<bool> fails = false;
  std::atomic<bool> is_full = false;

 private:
  void hang() { hangs.wait(true); }

  std::mutex mutex_;
  std::map<std::string, RowBytes> kept_;
};

/// Rows that say which item they are of.
Embedding item(std::uint8_t number) {
  Embedding item;
  item.rows = 2;
  item.width = 3;
  item.dtype = RowDType::kFloat16;
  item.data = RowBytes(12);
  std::fill(item.data.begin(), item.data.end(), std::byte{number});
  return item;
}

class SharedRowsTest : public testing::Test {
 protected:
  ~SharedRowsTest() override { memory->let_go(); }

  static SharedRowsOptions options() {
    return {.dtype = RowDType::kFloat16,
            .width = 3,
            .find_time = minutes(1),
            .keep_time = minutes(1),
            .shortest_pause = hours(1),
            .longest_pause = hours(1)};
  }
  /// Keeps what keys are numbers; "gone" is what the cache has not any more.
  std::unique_ptr<SharedRows> make(const SharedRowsOptions& with) {
    return std::make_unique<SharedRows>(memory, with,
                                        [](const std::string& key) -> std::optional<Embedding> {
                                          if (key == "gone") return std::nullopt;
                                          if (key == "bad")
                                            throw Error(ErrorCode::kDevice, "no rows");
                                          return item(static_cast<std::uint8_t>(key.back()));
                                        });
  }
  static std::optional<RowEntry> find(SharedRows& shared, const std::string& key) {
    return std::move(shared.find(std::vector{key}).at(0));
  }

  std::shared_ptr<Memory> memory = std::make_shared<Memory>();
};

TEST_F(SharedRowsTest, FindsWhatAnotherOneHasKept) {
  const auto one = make(options());
  const auto other = make(options());
  EXPECT_FALSE(find(*other, "k1"));
  one->keep("k1");
  one->keep("k2 8+4");
  one->wait_idle();
  EXPECT_EQ(memory->names(), (std::vector<std::string>{"k1-float16", "k2-8-4-float16"}));
  const auto found = other->find(std::vector<std::string>{"k2 8+4", "k3", "k1"});
  ASSERT_TRUE(found[0] && found[2]);
  EXPECT_FALSE(found[1]);
  EXPECT_EQ(found[2]->rows().data[0], static_cast<std::byte>('1'));
  EXPECT_EQ(other->stats().hits, 2);
  EXPECT_EQ(other->stats().misses, 2);
  EXPECT_EQ(one->stats().stored, 2);
  EXPECT_TRUE(one->stats().is_asked);
}

TEST_F(SharedRowsTest, SharesNothingBetweenTypesAndWidths) {
  const auto one = make(options());
  one->keep("k1");
  one->wait_idle();
  SharedRowsOptions wider = options();
  wider.width = 6;
  EXPECT_FALSE(find(*make(wider), "k1"));
  SharedRowsOptions longer = options();
  longer.dtype = RowDType::kFloat32;
  EXPECT_FALSE(find(*make(longer), "k1"));
}

TEST_F(SharedRowsTest, TakesNothingThatIsSpoilt) {
  const auto shared = make(options());
  shared->keep("k1");
  shared->wait_idle();
  memory->spoil();
  EXPECT_FALSE(find(*shared, "k1"));
  EXPECT_EQ(shared->stats().misses, 1);
}

TEST_F(SharedRowsTest, PassesOverAPlaceThatHangs) {
  SharedRowsOptions brief = options();
  brief.find_time = milliseconds(20);
  const auto shared = make(brief);
  memory->hangs = true;
  EXPECT_FALSE(find(*shared, "k1"));
  EXPECT_FALSE(shared->stats().is_asked);
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(find(*shared, "k1"));
  shared->keep("k1");
  shared->wait_idle();
  EXPECT_EQ(memory->asked, 1) << "once";
  EXPECT_EQ(shared->stats().skipped, 101);
  EXPECT_EQ(shared->stats().not_stored, 1);
}

TEST_F(SharedRowsTest, AsksAPlaceAgainThatIsBack) {
  SharedRowsOptions brief = options();
  brief.shortest_pause = brief.longest_pause = milliseconds(1);
  const auto shared = make(brief);
  shared->keep("k1");
  shared->wait_idle();
  memory->fails = true;
  while (shared->stats().is_asked) EXPECT_FALSE(find(*shared, "k1"));
  while (memory->asked < 5) EXPECT_FALSE(find(*shared, "k1"));
  memory->fails = false;
  while (!find(*shared, "k1")) std::this_thread::yield();
  EXPECT_TRUE(shared->stats().is_asked);
}

TEST_F(SharedRowsTest, AsksNothingWhileAThreadOfItHangs) {
  SharedRowsOptions brief = options();
  brief.find_time = milliseconds(5);
  brief.shortest_pause = brief.longest_pause = milliseconds(1);
  const auto shared = make(brief);
  memory->hangs = true;
  for (int i = 0; i < 20; ++i) {
    EXPECT_FALSE(find(*shared, "k1"));
    std::this_thread::sleep_for(milliseconds(2));  // more than the pause
  }
  EXPECT_EQ(memory->asked, 1);
  memory->let_go();
  while (!shared->stats().is_asked) (void)find(*shared, "k1");
}

TEST_F(SharedRowsTest, ReadsOnWhereThePlaceIsFull) {
  const auto shared = make(options());
  shared->keep("k1");
  shared->wait_idle();
  memory->is_full = true;
  shared->keep("k2");
  shared->wait_idle();
  EXPECT_EQ(shared->stats().not_stored, 1);
  EXPECT_TRUE(find(*shared, "k1"));
}

TEST_F(SharedRowsTest, KeepsNothingThatTheCacheHasNot) {
  const auto shared = make(options());
  shared->keep("gone");
  shared->keep("bad");
  shared->keep("k1");
  shared->wait_idle();
  EXPECT_EQ(memory->names(), std::vector<std::string>{"k1-float16"});
  EXPECT_EQ(shared->stats().not_stored, 2);
}

TEST_F(SharedRowsTest, KeepsAsManyWaitingAndNoMore) {
  const auto shared = make(options());
  memory->hangs = true;
  const std::size_t all = SharedRows::kMostWaiting + 10;
  for (std::size_t i = 0; i < all; ++i) shared->keep("k1");
  EXPECT_GE(shared->stats().not_stored, 9) << "all but those that wait, and perhaps one at work";
  memory->let_go();
  shared->wait_idle();
}

TEST_F(SharedRowsTest, EndsWhileThePlaceHangs) {
  memory->hangs = true;
  auto shared = make(options());
  shared->keep("k1");
  shared.reset();
}

}  // namespace
}  // namespace fovea
