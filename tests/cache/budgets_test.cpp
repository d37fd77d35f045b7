// Worked cases: rows of a step and of the cache.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fovea/encoder_cache.h"
#include "fovea/log.h"
#include "support/expect_error.h"

namespace fovea {
namespace {

/// Keeps what is logged.
class Lines final : public LogSink {
 public:
  void write(LogLevel, std::string_view line) override { lines.emplace_back(line); }
  std::vector<std::string> lines;
};

struct Case {
  CacheSettings settings;
  std::int64_t compute;
  std::int64_t capacity;
  std::size_t warnings;
};

TEST(CacheBudgets, HoldTheLargestItem) {
  const std::vector<Case> cases{
      {{.max_num_batched_tokens = 8192, .max_item_rows = 16384}, 16384, 16384, 0},
      {{.max_num_batched_tokens = 32768, .max_item_rows = 16384}, 32768, 32768, 0},
      {{.max_num_batched_tokens = 8192, .max_item_rows = 4096, .encoder_cache_size = 2048},
       8192,
       4096,
       1},
      {{.max_num_batched_tokens = 8192, .max_item_rows = 4096, .max_batched_encoder_rows = 4096},
       4096,
       4096,
       0},
      {{.max_num_batched_tokens = 8192, .max_item_rows = 4096, .encoder_cache_size = 65536},
       8192,
       65536,
       0},
      {{.max_num_batched_tokens = 2048, .max_item_rows = 153600}, 153600, 153600, 0},
      {{.max_num_batched_tokens = 2048, .max_item_rows = 0, .encoder_cache_size = 5}, 0, 0, 0}};
  for (const Case& c : cases) {
    Lines log;
    const CacheBudgets budgets = cache_budgets(c.settings, &log);
    EXPECT_EQ(budgets.compute_rows, c.compute);
    EXPECT_EQ(budgets.capacity_rows, c.capacity);
    EXPECT_EQ(log.lines.size(), c.warnings);
  }
}

TEST(CacheBudgets, NameBothNumbersWhereASettingIsRaised) {
  Lines log;
  (void)cache_budgets({.max_item_rows = 4096, .encoder_cache_size = 2048}, &log);
  ASSERT_EQ(log.lines.size(), 1u);
  EXPECT_EQ(log.lines[0], "encoder_cache.raised encoder_cache_size=2048 to=4096");
}

TEST(CacheBudgets, RefuseNegativeSettings) {
  test::expect_error(ErrorCode::kInvalidArgument, "encoder_cache_size: expected at least 0, got -1",
                     [] { (void)cache_budgets({.encoder_cache_size = -1}); });
}

}  // namespace
}  // namespace fovea
