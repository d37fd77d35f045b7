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

TEST(CacheBudgets, RefuseItemsThatMustNotBeSplitAndFitNoStep) {
  test::expect_error(ErrorCode::kInvalidArgument, "up to 8193 rows, more than the 8192 tokens", [] {
    (void)cache_budgets({.max_num_batched_tokens = 8192, .max_item_rows = 8193, .no_split = true});
  });
  EXPECT_EQ(cache_budgets({.max_item_rows = 8192, .no_split = true}).capacity_rows, 8192);
}

TEST(CacheBudgets, RefuseNegativeSettings) {
  test::expect_error(ErrorCode::kInvalidArgument, "encoder_cache_size: expected at least 0, got -1",
                     [] { (void)cache_budgets({.encoder_cache_size = -1}); });
}

/// Items per prompt and per batch of images with `max_item` rows.
std::pair<std::int64_t, std::int64_t> counts(std::int64_t max_item, std::int64_t limit,
                                             const ProfileSettings& settings) {
  const std::vector<ModalityBounds> images{{"image", max_item, limit}};
  const std::optional<ProfileCounts> counts = profile_counts(images, settings);
  return {counts->items_per_prompt, counts->items_per_batch};
}

CacheBudgets rows_of_both(std::int64_t rows) { return {rows, rows}; }

TEST(ProfileCounts, AreBoundByTheBudget) {
  EXPECT_EQ(counts(1024, 4, {.budgets = rows_of_both(8192), .max_model_len = 32768}),
            std::pair(4L, 8L));
  EXPECT_EQ(counts(1024, 4, {.budgets = {8192, 2048}, .max_model_len = 32768}), std::pair(4L, 2L));
}

TEST(ProfileCounts, AreAtLeastOneItem) {
  EXPECT_EQ(counts(5000, 4, {.budgets = rows_of_both(8192), .max_model_len = 32768}),
            std::pair(4L, 1L));
}

TEST(ProfileCounts, AreBoundByTheLongestPrompt) {
  EXPECT_EQ(counts(16384, 999, {.budgets = rows_of_both(16384), .max_model_len = 262144}),
            std::pair(16L, 1L));
}

TEST(ProfileCounts, AreBoundByTheRequests) {
  EXPECT_EQ(
      counts(1024, 2, {.budgets = rows_of_both(8192), .max_model_len = 1024, .max_num_seqs = 1}),
      std::pair(1L, 1L));
}

TEST(ProfileCounts, CountRequestsThatFitAStepWithoutChunkedPrefill) {
  const ProfileSettings settings{.budgets = rows_of_both(8192),
                                 .max_model_len = 32768,
                                 .max_num_seqs = 3,
                                 .max_num_batched_tokens = 2048,
                                 .chunked_prefill = false};
  EXPECT_EQ(counts(1024, 4, settings), std::pair(4L, 8L));
  EXPECT_EQ(counts(1024, 1, settings), std::pair(1L, 2L));
}

TEST(ProfileCounts, AreThoseOfTheModalityWithTheLargestItem) {
  const ProfileSettings settings{.budgets = rows_of_both(8192), .max_model_len = 32768};
  const std::vector<ModalityBounds> unlike{{"video", 100, 1}, {"image", 200, 3}};
  EXPECT_EQ(profile_counts(unlike, settings)->modality, "image");
  EXPECT_EQ(profile_counts(unlike, settings)->items_per_prompt, 3);
  const std::vector<ModalityBounds> equal{{"video", 200, 1}, {"image", 200, 3}};
  EXPECT_EQ(profile_counts(equal, settings)->modality, "video");
  EXPECT_FALSE(profile_counts({}, settings));
  const std::vector<ModalityBounds> none{{"image", 0, 1}};
  EXPECT_FALSE(profile_counts(none, settings));
}

}  // namespace
}  // namespace fovea
