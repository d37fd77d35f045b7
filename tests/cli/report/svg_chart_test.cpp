#include "report/svg_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

namespace fovea::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// Checks that elements are closed in the order they were opened and returns how many there are of
/// `name`; fails the test otherwise. Enough of XML for what the writer writes.
int count_elements(const std::string& svg, const std::string& name) {
  static const std::regex tag(R"(<(/?)([a-z]+)[^<>]*?(/?)>)");
  std::vector<std::string> open;
  int count = 0;
  for (std::sregex_iterator it(svg.begin(), svg.end(), tag), end; it != end; ++it) {
    const bool closes = (*it)[1].length() > 0;
    const bool empty = (*it)[3].length() > 0;
    if (closes) {
      EXPECT_FALSE(open.empty()) << it->str();
      if (open.empty()) return count;
      EXPECT_EQ(open.back(), (*it)[2].str());
      open.pop_back();
    } else {
      count += (*it)[2].str() == name ? 1 : 0;
      if (!empty) open.push_back((*it)[2]);
    }
  }
  EXPECT_TRUE(open.empty());
  return count;
}

BarChart two_bars() {
  return {.title = "Time per item",
          .unit = "milliseconds",
          .labels = {"a.png", "b.png"},
          .series = {{"decode", {1.5, 2}}, {"encode", {3, 0}}}};
}

TEST(SvgChart, BarsNameEverything) {
  const std::string svg = to_svg(two_bars());
  EXPECT_EQ(svg.rfind("<svg xmlns=\"http://www.w3.org/2000/svg\"", 0), 0U);
  for (const char* text :
       {"Time per item", "milliseconds", "a.png", "b.png", "decode", "encode", "4.50"}) {
    EXPECT_THAT(svg, HasSubstr(text));
  }
  // Ground, two legend swatches, and three parts: a value of zero has none.
  EXPECT_EQ(count_elements(svg, "rect"), 6);
}

TEST(SvgChart, BarLengthsAreProportional) {
  const std::string svg = to_svg(two_bars());
  static const std::regex part(R"re(width="([0-9.]+)" height="18.0")re");
  std::vector<double> widths;
  for (std::sregex_iterator it(svg.begin(), svg.end(), part), end; it != end; ++it) {
    widths.push_back(std::stod((*it)[1]));
  }
  ASSERT_EQ(widths.size(), 3U);  // 1.5 and 3 of the first bar, 2 of the second
  EXPECT_NEAR(widths[1] / widths[0], 2.0, 0.01);
  EXPECT_NEAR(widths[2] / widths[0], 2.0 / 1.5, 0.01);
}

TEST(SvgChart, TextIsEscaped) {
  BarChart chart = two_bars();
  chart.labels[0] = "<a&b>.png";
  const std::string svg = to_svg(chart);
  EXPECT_THAT(svg, HasSubstr("&lt;a&amp;b&gt;.png"));
  EXPECT_THAT(svg, Not(HasSubstr("<a&b>")));
  count_elements(svg, "rect");
}

TEST(SvgChart, EmptyBarsStillMakeADocument) {
  EXPECT_EQ(count_elements(
                to_svg(BarChart{.title = "none", .unit = "ms", .labels = {}, .series = {}}), "svg"),
            1);
}

LineChart two_lines() {
  return {.title = "Latency",
          .x_label = "patches",
          .y_label = "milliseconds",
          .x_scale = Scale::kLog,
          .y_scale = Scale::kLog,
          .series = {{"eager", {{64, 1.5}, {1024, 30}}}, {"replay", {{64, 1.2}, {1024, 29}}}}};
}

TEST(SvgChart, LinesNameEverything) {
  const std::string svg = to_svg(two_lines());
  for (const char* text :
       {"Latency", "patches", "milliseconds", "eager", "replay", ">64<", ">1024<", ">50<"}) {
    EXPECT_THAT(svg, HasSubstr(text));
  }
  EXPECT_EQ(count_elements(svg, "polyline"), 2);
  EXPECT_EQ(count_elements(svg, "circle"), 4);
}

TEST(SvgChart, LogarithmicAxesLeaveOutWhatTheyCannotShow) {
  LineChart chart = two_lines();
  chart.series[0].points.emplace_back(2048, 0);
  EXPECT_EQ(count_elements(to_svg(chart), "circle"), 4);
}

TEST(SvgChart, SinglePointAndNoPointMakeDocuments) {
  LineChart chart = two_lines();
  chart.series = {{"eager", {{64, 1.5}}}};
  EXPECT_EQ(count_elements(to_svg(chart), "circle"), 1);
  EXPECT_THAT(to_svg(chart), Not(HasSubstr("nan")));
  chart.series.clear();
  EXPECT_EQ(count_elements(to_svg(chart), "svg"), 1);
}

}  // namespace
}  // namespace fovea::cli
