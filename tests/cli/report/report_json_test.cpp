#include "report/report_json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/json.h"

namespace fovea::cli {
namespace {

using fovea::test::Json;
using fovea::test::read_again;

TEST(ReportJson, StatsHoldCountersRatesAndPaths) {
  Stats stats;
  stats.graph_hits = 3;
  stats.graph_partial = 1;
  stats.graph_misses = 1;
  stats.num_budgets = 2;
  stats.token_budgets = {64, 128};
  stats.miss_reasons["oversized"] = 1;
  stats.paths.push_back({.name = "default",
                         .token_budgets = {64, 128},
                         .replays = 2,
                         .live_rows = 100,
                         .padded_rows = 28});
  stats.graphs.push_back({.path = "default",
                          .budget = 64,
                          .capture_ms = 5,
                          .recording_bytes = 100,
                          .shared_bytes = 2000,
                          .replay_ms = 1,
                          .eager_ms = 2,
                          .stored_times = true});
  const Json json = read_again(to_json(stats));
  EXPECT_EQ(json["graphs"][0], Json({{"path", "default"},
                                     {"budget", 64},
                                     {"capture_ms", 5.0},
                                     {"recording_bytes", 100},
                                     {"shared_bytes", 2000},
                                     {"replay_ms", 1.0},
                                     {"eager_ms", 2.0},
                                     {"stored_times", true}}));
  EXPECT_EQ(json["graph_hits"], 3);
  EXPECT_EQ(json["graph_misses"], 1);
  EXPECT_DOUBLE_EQ(json["hit_rate"].get<double>(), 0.6);
  EXPECT_EQ(json["num_budgets"], 2);
  EXPECT_EQ(json["token_budgets"], Json({64, 128}));
  EXPECT_EQ(json["miss_reasons"]["oversized"], 1);
  EXPECT_EQ(json["paths"][0]["name"], "default");
  EXPECT_EQ(json["paths"][0]["replays"], 2);
  EXPECT_EQ(json["paths"][0]["live_rows"], 100);
  EXPECT_EQ(json["paths"][0]["padded_rows"], 28);
}

TEST(ReportJson, EnergyIsThereWhereItIsCounted) {
  Stats stats;
  EXPECT_FALSE(read_again(to_json(stats)).contains("energy_joules"));
  stats.energy_joules = 12.5;
  EXPECT_EQ(read_again(to_json(stats))["energy_joules"], 12.5);
}

TEST(ReportJson, ReplicasHaveTheirDeviceAndTheirCounters) {
  Stats stats;
  stats.graph_hits = 3;
  const Json json = read_again(to_json(ReplicaStats{.device = "cuda:1", .stats = stats}));
  EXPECT_EQ(json.names().front(), "device");
  EXPECT_EQ(json["device"], "cuda:1");
  EXPECT_EQ(json["graph_hits"], 3);
}

TEST(ReportJson, EmptyStatsKeepTheirTypes) {
  const Json json = read_again(to_json(Stats{}));
  EXPECT_TRUE(json["miss_reasons"].is_object());
  EXPECT_TRUE(json["paths"].is_array());
  EXPECT_TRUE(json["graphs"].is_array());
  EXPECT_TRUE(json["token_budgets"].is_array());
  EXPECT_EQ(json["hit_rate"], 0.0);
}

TEST(ReportJson, PlanTellsEagerFromReplay) {
  PackingPlan plan;
  plan.paths = {"global", "local"};
  plan.token_budgets = {{256}, {}};
  plan.items.push_back({.source_width_px = 640, .rows = 300});
  plan.replica_patches = {0, 1200};
  plan.batches.push_back(
      {.replica = 1, .items = {0}, .tokens = {200, 100}, .budgets = {256, std::nullopt}});
  const Json json = read_again(to_json(plan));
  EXPECT_EQ(json["token_budgets"]["global"], Json({256}));
  EXPECT_EQ(json["token_budgets"]["local"], Json::array());
  EXPECT_EQ(json["batches"][0]["budgets"], Json({256, nullptr}));
  EXPECT_EQ(json["batches"][0]["replica"], 1);
  EXPECT_EQ(json["replica_patches"], Json({0, 1200}));
  EXPECT_EQ(json["items"][0]["rows"], 300);
  EXPECT_TRUE(json["items"][0]["grid_thw"].is_null());
}

TEST(ReportJson, TextReplacesBytesThatAreNotUtf8) {
  EXPECT_EQ(json_text(JsonObject{{"name", "a\xff.png"}}),
            "{\n  \"name\": \"a\xef\xbf\xbd.png\"\n}\n");
}

Embedding item(const std::string& name, double decode_ms, double encode_ms) {
  Embedding result;
  result.name = name;
  result.times.decode_ms = decode_ms;
  result.times.encode_ms = encode_ms;
  return result;
}

TEST(SlowestItems, AreAllOfAFewInTheirOrder) {
  Embedding failed = item("bad.png", 9, 9);
  failed.error = Error(ErrorCode::kCorruptData, "broken");
  const Json json = read_again(slowest_items({item("a.png", 1, 2), failed, item("b.png", 3, 4)}));
  ASSERT_EQ(json.size(), 2U);
  EXPECT_EQ(json[0].dump(),
            R"({"name":"a.png","read_ms":0.0,"decode_ms":1.0,"resize_ms":0.0,"pack_ms":0.0,)"
            R"("encode_ms":2.0,"output_ms":0.0})");
  EXPECT_EQ(json[1]["name"], "b.png");
}

TEST(SlowestItems, OfManyAreSixty) {
  std::vector<Embedding> items;
  for (int i = 0; i < 100; ++i) items.push_back(item(std::to_string(i), 0, i));
  const Json json = read_again(slowest_items(items));
  ASSERT_EQ(json.size(), 60U);
  EXPECT_EQ(json[0]["name"], "99");
  EXPECT_EQ(json[59]["name"], "40");
}

}  // namespace
}  // namespace fovea::cli
