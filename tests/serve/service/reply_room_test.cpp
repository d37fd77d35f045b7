#include "serve/service/reply_room.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "serve/api_error.h"

namespace fovea::serve {
namespace {

constexpr std::size_t kEstimate = std::size_t{64} << 20;

std::vector<PlannedItem> videos(std::size_t count) {
  std::vector<PlannedItem> items;
  for (std::size_t i = 0; i < count; ++i) items.emplace_back(video_bytes({1}, "video"));
  return items;
}

/// Finished rows, so that their number is known.
PlannedItem known(std::int64_t rows) {
  return PlannedItem(precomputed_rows(std::vector<std::uint8_t>(static_cast<std::size_t>(rows) * 4),
                                      RowDType::kFloat32, rows, 1, "rows"));
}

TEST(ReplyRoom, IsThatOfTheRowsThatAreKnown) {
  Budget budget(100);
  {
    const ReplyRoom room(budget, 10, std::vector{known(3), known(5)});
    EXPECT_FALSE(room.is_refused());
    EXPECT_FALSE(room.is_estimate());
    EXPECT_EQ(budget.used(), 80);
    const ReplyRoom other(budget, 10, std::vector{known(3)});
    EXPECT_TRUE(other.is_refused());
    EXPECT_EQ(other.wanted(), 30);
  }
  EXPECT_EQ(budget.used(), 0);
}

TEST(ReplyRoom, OfAContainerIsAnEstimateUntilItsRowsAreKnown) {
  Budget budget(3 * kEstimate);
  const std::vector<PlannedItem> items = videos(2);
  ReplyRoom room(budget, 1024, items);
  EXPECT_TRUE(room.is_estimate());
  EXPECT_EQ(budget.used(), 2 * kEstimate);
  EXPECT_TRUE(room.take(items[0].media(), 1));  // a short one gives back
  EXPECT_EQ(budget.used(), kEstimate + 1024);
  EXPECT_TRUE(room.take(items[1].media(), 1 << 17));  // a long one takes more
  EXPECT_EQ(budget.used(), 2 * kEstimate + 1024);
  EXPECT_TRUE(room.take(items[1].media(), 1 << 17));  // of which it has all
  EXPECT_EQ(budget.used(), 2 * kEstimate + 1024);
  EXPECT_FALSE(room.is_refused());
  EXPECT_FALSE(room.take(items[1].media(), 1 << 18));
  EXPECT_TRUE(room.is_refused());
  EXPECT_EQ(room.wanted(), 4 * kEstimate + 1024);
  EXPECT_EQ(budget.used(), 2 * kEstimate + 1024) << "what it has it keeps";
}

}  // namespace
}  // namespace fovea::serve
