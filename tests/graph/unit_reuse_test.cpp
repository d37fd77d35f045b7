// Equal units: which are found, what is left to run, and the rows that copies get.
#include "graph/unit_reuse.h"

#include <gtest/gtest.h>

#include "graph/harness.h"
#include "support/expect_error.h"
#include "support/property.h"

namespace fovea {
namespace {

using namespace test;  // NOLINT: the harness is written for these tests

using Unit = UnitReuse::Unit;

/// A video of one token of `bytes` bytes per unit, whose unit i holds the value of contents[i].
PreparedItem video(const std::vector<int>& contents, std::size_t bytes = 1000) {
  PreparedItem item;
  ItemPlan& plan = item.plan;
  const auto count = static_cast<std::int64_t>(contents.size());
  plan.grid = {count, 2, 2};
  plan.unit_bytes[0] = bytes;
  plan.pixel_bytes = bytes * contents.size();
  plan.spec = {.input_rows = 4 * count, .out_rows = count, .num_seqs = count};
  plan.spec.path_tokens[0] = count;
  plan.spec.units[0] = {count, 4, 1};
  for (const int content : contents) {
    item.pixels.insert(item.pixels.end(), bytes, static_cast<std::uint8_t>(content));
  }
  return item;
}

class UnitReuseTest : public ::testing::Test {
 protected:
  void find() {
    pointers_.clear();
    for (const PreparedItem& item : items_) pointers_.push_back(&item);
    reuse_.find(pointers_, {}, 1);
  }
  /// Units [first, first + count) of those that run, as "first+count" of consecutive ones.
  [[nodiscard]] std::string parts(std::size_t item, std::int64_t first, std::int64_t count) const {
    std::vector<ItemPart> parts;
    reuse_.append_parts(item, 0, first, count, parts);
    std::string text;
    for (const ItemPart& part : parts) {
      text +=
          (text.empty() ? "" : " ") + std::to_string(part.first) + "+" + std::to_string(part.count);
    }
    return text;
  }

  std::vector<PreparedItem> items_;
  std::vector<const PreparedItem*> pointers_;
  UnitReuse reuse_;
};

TEST_F(UnitReuseTest, FramesThatDoNotChangeRunOnce) {
  items_ = {video({1, 1, 2, 1, 3})};
  find();
  EXPECT_EQ(reuse_.num_copies(), 2);
  EXPECT_EQ(reuse_.num_copies(0), 2);
  const ItemSpec spec = reuse_.spec(0);
  EXPECT_EQ(spec.units[0].count, 3);
  EXPECT_EQ(spec.path_tokens[0], 3);
  EXPECT_EQ(spec.num_seqs, 3);
  EXPECT_EQ(parts(0, 0, 3), "0+1 2+1 4+1");
  EXPECT_EQ(parts(0, 1, 1), "2+1");
  const auto copies = reuse_.copies_of({0, 0, 0});
  ASSERT_EQ(copies.size(), 2U);
  EXPECT_EQ(copies[0].to, (Unit{0, 0, 1}));
  EXPECT_EQ(copies[1].to, (Unit{0, 0, 3}));
  EXPECT_TRUE(reuse_.copies_of({0, 0, 2}).empty());
}

TEST_F(UnitReuseTest, ConsecutiveUnitsStayOnePart) {
  items_ = {video({1, 2, 3, 3, 4, 5})};
  find();
  EXPECT_EQ(parts(0, 0, 5), "0+3 4+2");
  EXPECT_EQ(parts(0, 2, 2), "2+1 4+1");
}

TEST_F(UnitReuseTest, UnitsOfOtherItemsAreFoundToo) {
  items_ = {video({1, 2}), video({7}), video({2, 2, 9})};
  find();
  EXPECT_EQ(reuse_.num_copies(0), 0);
  EXPECT_EQ(reuse_.num_copies(2), 2);
  EXPECT_EQ(reuse_.copies_of({0, 0, 1}).size(), 2U);
  items_ = {video({1}), video({1})};
  find();
  EXPECT_EQ(reuse_.spec(1).path_tokens[0], 0) << "nothing of it is left to run";
}

TEST_F(UnitReuseTest, OneByteMakesADifferenceWhereverItLies) {
  for (std::size_t byte = 0; byte < 1000; ++byte) {
    items_ = {video({1, 1})};
    items_[0].pixels[1000 + byte] ^= 1;
    find();
    ASSERT_EQ(reuse_.num_copies(), 0) << byte;
  }
}

TEST_F(UnitReuseTest, UnitsThatDifferOutsideTheSampleHaveCopiesOfTheirOwn) {
  for (std::size_t byte = 0; byte < 1000; byte += 7) {
    items_ = {video({1, 1, 1, 1, 1, 1})};
    for (const std::size_t unit : {1, 3, 4}) items_[0].pixels[1000 * unit + byte] = 9;
    items_[0].pixels[1000 * 5 + byte] = 8;
    find();
    ASSERT_EQ(parts(0, 0, 3), "0+2 5+1") << byte;
    ASSERT_EQ(reuse_.copies_of({0, 0, 0}).size(), 1U);
    ASSERT_EQ(reuse_.copies_of({0, 0, 1}).size(), 2U);
  }
}

TEST_F(UnitReuseTest, AnotherGridOrLayoutIsAnotherUnit) {
  const auto copies_beside = [&](auto&& change) {
    items_ = {video({1}), video({1})};
    change(items_[1].plan);
    find();
    return reuse_.num_copies();
  };
  EXPECT_EQ(copies_beside([](ItemPlan&) {}), 1);
  EXPECT_EQ(copies_beside([](ItemPlan& plan) { plan.grid = {1, 1, 4}; }), 0);
  EXPECT_EQ(copies_beside([](ItemPlan& plan) { plan.layout = PixelLayout::kPatches; }), 0);
  EXPECT_EQ(copies_beside([](ItemPlan& plan) { plan.resized_width_px = 8; }), 0);
}

TEST_F(UnitReuseTest, AnOddLastFrameIsNoCopyOfAFullOne) {
  items_ = {video({1, 1, 1})};
  items_[0].pixels.resize(2500);  // the last unit has half of the bytes
  find();
  EXPECT_EQ(reuse_.num_copies(), 1);
}

TEST_F(UnitReuseTest, ForgetsWhatItFound) {
  items_ = {video({1, 1})};
  find();
  reuse_.clear();
  EXPECT_EQ(reuse_.num_copies(), 0);
  EXPECT_EQ(reuse_.num_copies(0), 0);
}

// --- in a manager ---

GraphManagerOptions unit_options(bool reuse = true) {
  GraphManagerOptions options = small_options();
  options.packing = PackingPolicy::kUnits;
  options.reuse_units = reuse;
  return options;
}

TEST(UnitReuseInManager, EqualItemsRunOnceAndCountEach) {
  MockHarness h = make_mock({}, unit_options());
  h.manager.capture();
  std::vector<PreparedItem> items(5, h.model.make_item({1, 4, 4}, 3));
  items.push_back(h.model.make_item({1, 4, 4}, 4));
  h.expect_right(Batch(std::move(items)));
  const Stats stats = h.manager.stats();
  EXPECT_EQ(stats.units_reused, 4);
  EXPECT_EQ(stats.graph_hits, 6);
  EXPECT_EQ(stats.sub_batches, 1);
  EXPECT_EQ(stats.paths[0].live_rows, 8);
  EXPECT_EQ(stats.paths[0].replayed_items, 2);
}

TEST(UnitReuseInManager, ACopyCountsAsWhatItIsACopyOf) {
  MockHarness h = make_mock({}, unit_options());
  h.manager.capture();
  h.expect_right(Batch({3, h.model.make_item({1, 18, 18}, 3)}));  // oversized
  EXPECT_EQ(h.manager.stats().graph_misses, 3);
  EXPECT_EQ(h.manager.stats().miss_reasons.at("oversized"), 3);
}

TEST(UnitReuseInManager, CountsCopiesWhoseRowsAreThere) {
  int left = 2;  // sub-batches until memory runs out
  const auto run_out = [&] {
    if (--left == 0) throw Error(ErrorCode::kOutOfMemory, "no memory");
  };
  MockHarness h = make_mock({.before_fill = run_out}, unit_options());
  std::vector<PreparedItem> items(3, h.model.make_item({1, 4, 4}, 3));
  items.resize(5, h.model.make_item({1, 18, 18}, 4));  // a sub-batch of its own
  const Batch batch(std::move(items));
  expect_error(ErrorCode::kOutOfMemory, "no memory", [&] { (void)h.encode(batch); });
  EXPECT_EQ(h.manager.stats().graph_misses, 3);
  EXPECT_EQ(h.manager.stats().units_reused, 2);
  h.expect_right(batch);
  EXPECT_EQ(h.manager.stats().graph_misses, 3 + 5);
  EXPECT_EQ(h.manager.stats().units_reused, 2 + 3);
}

TEST(UnitReuseInManager, TheSwitchTurnsItOff) {
  MockHarness h = make_mock({}, unit_options(false));
  h.manager.capture();
  h.expect_right(Batch({3, h.model.make_item({1, 4, 4}, 3)}));
  EXPECT_EQ(h.manager.stats().units_reused, 0);
  EXPECT_EQ(h.manager.stats().paths[0].replayed_items, 3);
}

TEST(UnitReuseInManager, RandomMixesWithEqualItemsGiveTheRowsOfEachAlone) {
  for_all(300, [](auto& random) {
    MockHarness h = make_mock({.byte_pixels = true}, unit_options());
    if (uniform(random, 0, 3) > 0) h.manager.capture();
    std::vector<PreparedItem> items;
    for (std::int64_t i = uniform(random, 1, 12); i > 0; --i) {
      const Grid grid{uniform(random, 1, 5), 2 * uniform(random, 1, 3), 4};
      items.push_back(h.model.make_item(grid, static_cast<std::uint64_t>(uniform(random, 0, 2))));
    }
    const auto count = static_cast<std::int64_t>(items.size());
    h.expect_right(Batch(std::move(items)));
    const Stats stats = h.manager.stats();
    EXPECT_EQ(stats.graph_hits + stats.graph_partial + stats.graph_misses + stats.skipped, count);
  });
}

}  // namespace
}  // namespace fovea
