// What is printed of a replay.
#include "bench/cache/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/json.h"

namespace fovea::cli {
namespace {

using fovea::test::Json;
using fovea::test::read_again;

std::vector<CacheRun> runs() {
  return {{Storage::kCompact,
           100,
           {.capacity = 1024,
            .peak_held = 10,
            .peak_used = 512,
            .items = 8,
            .hits = 6,
            .encoded = 3,
            .evictions = 1}},
          {Storage::kScattered, 100, {.capacity = 2048, .items = 8, .hits = 2}}};
}

TEST(CacheReport, HasALinePerRun) {
  const std::string table = cache_table(runs(), 1024);
  EXPECT_THAT(table, ::testing::HasSubstr("compact"));
  EXPECT_THAT(table, ::testing::HasSubstr("1.0 MiB"));
  EXPECT_THAT(table, ::testing::HasSubstr("512.0 KiB"));
  EXPECT_THAT(table, ::testing::HasSubstr("75.0 %"));
  EXPECT_THAT(table, ::testing::HasSubstr("25.0 %"));
}

TEST(CacheReport, HasAllFiguresAsJson) {
  const Json json = read_again(cache_json(runs(), 1024));
  EXPECT_EQ(json[0]["capacity_bytes"], 1 << 20);
  EXPECT_EQ(json[0]["cache_size"], 100);
  EXPECT_EQ(json[0]["hit_rate"], 0.75);
  EXPECT_EQ(json[1]["storage"], "scattered");
}

}  // namespace
}  // namespace fovea::cli
