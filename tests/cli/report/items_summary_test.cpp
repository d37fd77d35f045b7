#include "report/items_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace fovea::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// An item of so many rows that took as many milliseconds to decode.
Embedding item_of(std::int64_t rows, Modality modality = Modality::kImage) {
  Embedding item;
  item.name = "item " + std::to_string(rows);
  item.modality = modality;
  item.rows = rows;
  item.times.decode_ms = static_cast<double>(rows);
  return item;
}

std::vector<Embedding> four_items() {
  std::vector<Embedding> items{item_of(3), item_of(40), item_of(5), item_of(7, Modality::kVideo)};
  items.emplace_back().error = Error(ErrorCode::kCorruptData, "broken");
  return items;
}

TEST(ItemsSummary, CountsItemsAndTheirRows) {
  const std::string text = items_summary(four_items(), {});
  EXPECT_THAT(text, HasSubstr("items   5: 3 images and 1 video, 1 failed\n"));
  EXPECT_THAT(text, HasSubstr("rows    55: from 3 to 40 of an item, median 7\n"));
  EXPECT_THAT(text, Not(HasSubstr("differs")));
}

TEST(ItemsSummary, SaysWhatStagesTookAndWhichItemMost) {
  EXPECT_THAT(items_summary(four_items(), {}),
              HasSubstr("decode   55.00       7.00    40.00  item 40\n"));
}

TEST(ItemsSummary, NamesTheItemThatDiffersMost) {
  const std::vector<Embedding> items = four_items();
  std::vector<std::optional<double>> differences{1e-7, 2e-6, std::nullopt, 3e-7, std::nullopt};
  EXPECT_THAT(items_summary(items, differences),
              HasSubstr("\ndiffers at most 2.0e-06, item 40, of 3 items with reference rows\n"));
  differences[0] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(items_summary(items, differences), HasSubstr("differs at most not finite, item 3,"));
}

TEST(ItemsSummary, HasLittleToSayWhereAllItemsFailed) {
  std::vector<Embedding> items(2);
  for (Embedding& item : items) item.error = Error(ErrorCode::kIo, "broken");
  EXPECT_EQ(items_summary(items, {}), "items   2: 0 images, 2 failed\n");
}

}  // namespace
}  // namespace fovea::cli
