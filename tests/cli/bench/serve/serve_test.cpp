// Arrivals and reports of `fovea bench serve`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "bench/serve/load.h"
#include "support/json.h"

namespace fovea::cli {
namespace {

using fovea::test::Json;
using fovea::test::read_again;

using ::testing::HasSubstr;

TEST(Arrivals, DependOnTheSeedAloneAndHaveTheRate) {
  const std::vector<double> moments = arrivals(20'000, 50, 7);
  EXPECT_EQ(moments, arrivals(20'000, 50, 7));
  EXPECT_NE(moments, arrivals(20'000, 50, 8));
  EXPECT_TRUE(std::ranges::is_sorted(moments));
  EXPECT_NEAR(moments.back(), 400, 12);  // four standard deviations of the sum
}

TEST(Arrivals, AreIndependent) {
  // Of a Poisson process, exp(-1) of the gaps are longer than the mean.
  const std::vector<double> moments = arrivals(20'000, 1, 1);
  double before = 0;
  const auto longer = std::ranges::count_if(
      moments, [&](double moment) { return moment - std::exchange(before, moment) > 1; });
  EXPECT_NEAR(static_cast<double>(longer) / 20'000, 0.3679, 0.014);
}

std::vector<ServeResult> results() {
  std::vector<ServeResult> results(3);
  results[0] = {"one call", {}, {.latency_ms = {10, 10, 10, 10}, .refused = 0, .seconds = 1}};
  results[1] = {"batcher", 5000, {.latency_ms = {1, 2, 3}, .refused = 1, .seconds = 1}};
  results[1].run.stats.batches = 2;
  results[1].run.stats.batch_items = 3;
  results[2] = {"batcher", 0, {.latency_ms = {4}, .refused = 0, .seconds = 0.5}};
  return results;
}

TEST(ServeReport, ComparesWithOneCall) {
  const std::string table = serve_table(results());
  EXPECT_THAT(table, HasSubstr("0.75"));
  EXPECT_THAT(table, HasSubstr("5.00"));
  EXPECT_THAT(table, HasSubstr("1.5"));
  const Json json = read_again(serve_json(results()));
  EXPECT_EQ(json[0].contains("delay_us"), false);
  EXPECT_EQ(json[1]["delay_us"], 5000);
  EXPECT_EQ(json[1]["items_per_s"], 3);
  EXPECT_EQ(json[1]["refused"], 1);
  EXPECT_EQ(json[1]["latency_ms"]["median"], 2);
}

}  // namespace
}  // namespace fovea::cli
