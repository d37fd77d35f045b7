// Rows merged where a device finds them are those that merge_rows() merges on the host.
#include <gtest/gtest.h>

#include <random>

#include "engine/cached/noise.h"
#include "fovea/fovea.h"
#include "support/expect_error.h"

namespace fovea {
namespace {

/// Rows of three items at random positions of a batch, three levels each.
struct MergeCase {
  static constexpr std::int64_t kHidden = 8;
  static constexpr std::int64_t kLevels = 3;

  explicit MergeCase(unsigned seed) {
    std::mt19937 random(seed);
    const auto value = [&] { return static_cast<float>(random() % 1000) / 7.0F; };
    for (std::vector<float>& rows : items) {
      rows.resize((1 + random() % 9) * kHidden * (1 + kLevels));
      std::ranges::generate(rows, value);
      gathered.rows.push_back({.data = reinterpret_cast<const std::byte*>(rows.data()),
                               .rows = std::ssize(rows) / (kHidden * (1 + kLevels)),
                               .width = kHidden * (1 + kLevels)});
      for (std::int64_t row = 0; row < gathered.rows.back().rows; ++row) {
        gathered.is_embed.insert(gathered.is_embed.end(), random() % 3, false);
        gathered.is_embed.push_back(true);
      }
    }
    gathered.is_embed.push_back(false);
  }

  std::vector<float> items[3];
  GatheredRows gathered;
};

struct Target {
  explicit Target(const MergeCase& of)
      : data(of.gathered.is_embed.size() * MergeCase::kHidden, 0x4040),
        levels(data.size() * MergeCase::kLevels, 0x4040) {
    view = {.data = reinterpret_cast<std::byte*>(data.data()),
            .positions = std::ssize(of.gathered.is_embed),
            .hidden = MergeCase::kHidden,
            .dtype = RowDType::kBFloat16,
            .deepstack = reinterpret_cast<std::byte*>(levels.data()),
            .levels = MergeCase::kLevels};
  }
  std::vector<std::uint16_t> data;
  std::vector<std::uint16_t> levels;
  EmbeddingsView view;
};

TEST(EngineMergeRows, WritesWhatMergeRowsWrites) {
  Engine engine = test::load_cached(0);
  for (unsigned seed = 0; seed < 50; ++seed) {
    const MergeCase of(seed);
    const Target expected(of);
    const Target got(of);
    merge_rows(of.gathered, expected.view);
    engine.merge_rows(of.gathered, got.view, {});
    EXPECT_EQ(got.data, expected.data) << seed;
    EXPECT_EQ(got.levels, expected.levels) << seed;
  }
}

TEST(EngineMergeRows, WritesNothingIfTheNumbersDiffer) {
  Engine engine = test::load_cached(0);
  MergeCase of(1);
  of.gathered.is_embed.front() = !of.gathered.is_embed.front();
  const Target got(of);
  const Target untouched(of);
  test::expect_error(ErrorCode::kInvalidArgument, "rows do not fit",
                     [&] { engine.merge_rows(of.gathered, got.view, {}); });
  EXPECT_EQ(got.data, untouched.data);
  EXPECT_EQ(got.levels, untouched.levels);
}

TEST(EngineMergeRows, TakesNoStreamOnACpu) {
  Engine engine = test::load_cached(0);
  const MergeCase of(1);
  const Target got(of);
  test::expect_error(ErrorCode::kInvalidArgument, "needs no stream",
                     [&] { engine.merge_rows(of.gathered, got.view, {.device = 0}); });
}

}  // namespace
}  // namespace fovea
