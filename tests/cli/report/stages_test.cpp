#include "report/stages.h"

#include <gtest/gtest.h>

namespace fovea::cli {
namespace {

Embedding item(const std::string& name, double decode_ms, double encode_ms) {
  Embedding result;
  result.name = name;
  result.times.decode_ms = decode_ms;
  result.times.encode_ms = encode_ms;
  return result;
}

TEST(Stages, TotalIsTheSumOfAll) {
  EXPECT_DOUBLE_EQ(total_ms({.read_ms = 1,
                             .decode_ms = 2,
                             .resize_ms = 4,
                             .pack_ms = 8,
                             .encode_ms = 16,
                             .output_ms = 32}),
                   63);
}

TEST(Stages, ChartHasOneBarPerItemAndOneSeriesPerStage) {
  const BarChart chart = stage_chart({item("a.png", 1, 2), item("b.png", 3, 4)});
  EXPECT_EQ(chart.labels, (std::vector<std::string>{"a.png", "b.png"}));
  ASSERT_EQ(chart.series.size(), kStages.size());
  EXPECT_EQ(chart.series[1].name, "decode");
  EXPECT_EQ(chart.series[1].values, (std::vector<double>{1, 3}));
}

TEST(Stages, ChartLeavesOutFailedItems) {
  Embedding failed = item("bad.png", 0, 0);
  failed.error = Error(ErrorCode::kCorruptData, "broken");
  EXPECT_EQ(stage_chart({failed, item("b.png", 1, 1)}).labels, (std::vector<std::string>{"b.png"}));
}

TEST(Stages, ChartShowsTheSlowestOfMany) {
  std::vector<Embedding> items;
  for (int i = 0; i < 100; ++i) items.push_back(item(std::to_string(i), 0, i));
  const BarChart chart = stage_chart(items);
  ASSERT_EQ(chart.labels.size(), 60U);
  EXPECT_EQ(chart.labels.front(), "99");
  EXPECT_EQ(chart.labels.back(), "40");
  EXPECT_EQ(chart.title, "Time per item, the slowest 60 of 100");
}

}  // namespace
}  // namespace fovea::cli
