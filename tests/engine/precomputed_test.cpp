// Items that come as finished rows: handed on in their place, seen by no tower.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "fovea/fovea.h"
#include "support/expect_error.h"
#include "support/golden.h"

namespace fovea {
namespace {

constexpr std::int64_t kWidth = 256;  // of the tiny Qwen3-VL checkpoint

MediaItem grey_image(std::int64_t width, std::int64_t height) {
  return image_rgb(std::vector<std::uint8_t>(static_cast<std::size_t>(width * height * 3), 77),
                   width, height, "image");
}

/// Rows 0, 1, 2, ... / 8: exact in every dtype while the numbers are small.
std::vector<float> ramp(std::int64_t rows) {
  std::vector<float> values(static_cast<std::size_t>(rows * kWidth));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 256) / 8;
  return values;
}

MediaItem rows_of(std::span<const float> values, std::int64_t rows, std::int64_t width = kWidth,
                  RowDType dtype = RowDType::kFloat32) {
  std::vector<std::uint8_t> bytes(values.size() * sizeof(float));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return precomputed_rows(std::move(bytes), dtype, rows, width, "known rows");
}

class Precomputed : public ::testing::TestWithParam<int> {
 protected:
  [[nodiscard]] std::vector<Embedding> encode(std::vector<MediaItem> items,
                                              const EncodeOptions& how = {}) {
    return engine_.encode(items, how);
  }
  void expect_refused(const MediaItem& item, const std::string& part) {
    test::expect_error(ErrorCode::kInvalidArgument, "known rows: " + part,
                       [&] { (void)encode({item}); });
  }

  Engine engine_ =
      Engine::load(test::golden_folder("qwen3_vl", "golden.safetensors"),
                   {.device = "cpu", .data_parallel_size = GetParam(), .num_threads = 2});
};

TEST_P(Precomputed, AreHandedOnAndSeenByNoTower) {
  const std::vector<float> values = ramp(3);
  const Embedding rows = encode({rows_of(values, 3)}).front();
  EXPECT_EQ(rows.name, "known rows");
  EXPECT_EQ(rows.rows, 3);
  EXPECT_EQ(rows.width, kWidth);
  ASSERT_EQ(rows.data.size(), values.size() * sizeof(float));
  EXPECT_EQ(std::memcmp(rows.data.data(), values.data(), rows.data.size()), 0);
  EXPECT_FALSE(rows.grid_thw);
  const Stats stats = engine_.stats();
  EXPECT_EQ(stats.miss_reasons.at("precomputed"), 1);
  EXPECT_EQ(stats.skipped, 1);
  EXPECT_EQ(stats.graph_hits + stats.graph_partial + stats.graph_misses, 0);
  for (const ReplicaStats& replica : engine_.replica_stats()) {  // the manager is bypassed
    EXPECT_EQ(replica.stats.skipped + replica.stats.sub_batches, 0);
    EXPECT_TRUE(replica.stats.miss_reasons.empty());
  }
}

TEST_P(Precomputed, KeepTheirPlaceAmongImages) {
  const std::vector<Embedding> encoded = encode({grey_image(64, 64), grey_image(96, 64)});
  const std::vector<MediaItem> mixed{rows_of(ramp(2), 2), grey_image(64, 64),
                                     precomputed(encoded[0]), rows_of({}, 0), grey_image(96, 64)};
  const std::vector<Embedding> rows = encode(mixed);
  ASSERT_EQ(rows.size(), 5U);
  EXPECT_EQ(rows[0].at(1, 7), 7.0F / 8);
  EXPECT_EQ(rows[1].data, encoded[0].data);
  EXPECT_EQ(rows[2].data, encoded[0].data);
  EXPECT_EQ(rows[2].name, encoded[0].name);
  EXPECT_EQ(rows[2].grid_thw, encoded[0].grid_thw);
  EXPECT_EQ(rows[4].data, encoded[1].data);
  EXPECT_EQ(engine_.stats().graph_hits, 4);
  EXPECT_EQ(engine_.stats().hit_rate(), 1.0);
  EXPECT_EQ(engine_.stats().miss_reasons.at("precomputed"), 3);
}

TEST_P(Precomputed, NoRowsAreRowsToo) {
  const Embedding rows = encode({rows_of({}, 0)}).front();
  EXPECT_FALSE(rows.error);
  EXPECT_EQ(rows.rows, 0);
  EXPECT_EQ(rows.width, kWidth);
  EXPECT_TRUE(rows.data.empty());
}

TEST_P(Precomputed, ComeOutInTheAskedDtype) {
  const std::vector<float> values = ramp(1);
  for (const RowDType dtype : {RowDType::kBFloat16, RowDType::kFloat16}) {
    const Embedding narrow = encode({rows_of(values, 1)}, {.dtype = dtype}).front();
    EXPECT_EQ(narrow.data.size(), values.size() * 2);
    EXPECT_EQ(narrow.dtype, dtype);
    const Embedding wide = encode({precomputed(narrow)}).front();  // and back again
    EXPECT_EQ(std::memcmp(wide.data.data(), values.data(), wide.data.size()), 0);
  }
}

TEST_P(Precomputed, VideosStayVideosWithTheirGrid) {
  const MediaItem clip =
      video_rgb(std::vector<std::uint8_t>(3 * 64 * 48 * 3, 90), 3, 64, 48, 2.0, "clip");
  const Embedding first = encode({clip}).front();
  const Embedding again = encode({precomputed(first)}).front();
  EXPECT_EQ(again.modality, Modality::kVideo);
  EXPECT_EQ(again.grid_thw, first.grid_thw);
  EXPECT_EQ(again.data, first.data);
}

TEST_P(Precomputed, RowsOfAnotherWidthAreRefused) {
  expect_refused(rows_of(std::vector<float>(2 * 255), 2, 255),
                 "rows of this model are 256 wide, got 255");
}

TEST_P(Precomputed, BytesOfAnotherDtypeAreRefused) {
  expect_refused(rows_of(ramp(3), 3, kWidth, RowDType::kBFloat16),
                 "3 rows of 256 x bfloat16 do not take 3072 bytes");
  expect_refused(rows_of(ramp(3), 2), "2 rows of 256 x float32 do not take 3072 bytes");
}

TEST_P(Precomputed, ImpossibleSizesAreRefused) {
  expect_refused(rows_of({}, -1), "-1 rows");
  expect_refused(rows_of({}, std::int64_t{1} << 62),
                 "4611686018427387904 rows of 256 x float32 do not take 0 bytes");
  expect_refused(rows_of(ramp(1), -1, -kWidth), "-1 rows of -256");
}

TEST_P(Precomputed, ABadOneIsSkippedOnRequest) {
  const std::vector<Embedding> rows =
      encode({rows_of(ramp(1), 2), rows_of(ramp(1), 1)}, {.on_error = OnError::kSkip});
  EXPECT_TRUE(rows[0].error);
  EXPECT_FALSE(rows[1].error);
  EXPECT_EQ(engine_.stats().miss_reasons.at("precomputed"), 1);
  test::expect_error(ErrorCode::kInvalidArgument, "known rows: failed and has no rows",
                     [&] { (void)precomputed(rows[0]); });
}

INSTANTIATE_TEST_SUITE_P(Replicas, Precomputed, ::testing::Values(1, 3));

}  // namespace
}  // namespace fovea
