// Worked cases: rows of a placeholder and where they go.
#include "fovea/placeholder.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "cache/requests.h"
#include "support/expect_error.h"

namespace fovea {

void PrintTo(const IndexRange& range, std::ostream* out) {  // NOLINT: GoogleTest looks for it
  *out << "[" << range.begin << ", " << range.end << ")";
}

namespace {

using test::expect_error;
using test::mask_of;
using Spans = std::vector<IndexRange>;

PlaceholderRange masked(std::int64_t offset, const std::string& mask) {
  return {offset, std::ssize(mask), mask_of(mask)};
}

// Three temporal patches of a video: six tokens of a timestamp, a start, four rows, an end.
const std::string kPatch = "000000011110";
const PlaceholderRange kA = masked(2, "01011");
const PlaceholderRange kB(0, 4);
const PlaceholderRange kC = masked(7, "000");
const PlaceholderRange kD = masked(5, "110010");
const PlaceholderRange kE(0, 0);
const PlaceholderRange kVideo = masked(10, kPatch + kPatch + kPatch);

TEST(PlaceholderRange, HasARowForEveryPositionThatTakesOne) {
  EXPECT_EQ(kA.num_embeds(), 3);
  EXPECT_EQ(kB.num_embeds(), 4);
  EXPECT_EQ(kC.num_embeds(), 0);
  EXPECT_EQ(kD.num_embeds(), 3);
  EXPECT_EQ(kE.num_embeds(), 0);
  EXPECT_EQ(kVideo.num_embeds(), 12);
  EXPECT_EQ(kVideo.length(), 36);
}

TEST(PlaceholderRange, MapsPositionsToRows) {
  struct Case {
    const PlaceholderRange* placeholder;
    IndexRange positions;
    IndexRange rows;
  };
  for (const Case& c :
       {Case{&kA, {0, 5}, {0, 3}}, Case{&kA, {3, 5}, {1, 3}}, Case{&kA, {0, 1}, {0, 0}},
        Case{&kA, {2, 3}, {1, 1}}, Case{&kA, {1, 2}, {0, 1}}, Case{&kA, {0, 0}, {0, 0}},
        Case{&kA, {5, 5}, {3, 3}}, Case{&kD, {0, 6}, {0, 3}}, Case{&kD, {2, 4}, {2, 2}},
        Case{&kD, {1, 5}, {1, 3}}, Case{&kD, {4, 6}, {2, 3}}, Case{&kB, {0, 4}, {0, 4}},
        Case{&kB, {1, 3}, {1, 3}}, Case{&kB, {0, 0}, {0, 0}}, Case{&kVideo, {0, 9}, {0, 2}},
        Case{&kVideo, {7, 20}, {0, 5}}, Case{&kVideo, {12, 19}, {4, 4}},
        Case{&kVideo, {12, 20}, {4, 5}}}) {
    EXPECT_EQ(c.placeholder->embed_range(c.positions), c.rows)
        << c.positions.begin << ", " << c.positions.end;
  }
}

TEST(PlaceholderRange, HasSpansOfPromptPositions) {
  EXPECT_EQ(kA.embed_spans(), (Spans{{3, 4}, {5, 7}}));
  EXPECT_EQ(kB.embed_spans(), (Spans{{0, 4}}));
  EXPECT_EQ(kC.embed_spans(), Spans{});
  EXPECT_EQ(kD.embed_spans(), (Spans{{5, 7}, {9, 10}}));
  EXPECT_EQ(kE.embed_spans(), Spans{});
  EXPECT_EQ(kVideo.embed_spans(), (Spans{{17, 21}, {29, 33}, {41, 45}}));
}

TEST(PlaceholderRange, EqualsTheSamePositionsAndMask) {
  EXPECT_EQ(masked(2, "01011"), kA);
  EXPECT_NE(masked(3, "01011"), kA);
  EXPECT_NE(masked(2, "01010"), kA);
  EXPECT_NE(masked(0, "1111"), kB) << "a mask of nothing but true is not an absent one";
}

TEST(PlaceholderRange, RefusesWhatDoesNotFit) {
  constexpr auto kInvalid = ErrorCode::kInvalidArgument;
  expect_error(kInvalid, "mask of as many, got 3", [] { PlaceholderRange(0, 4, mask_of("111")); });
  expect_error(kInvalid, "got -1 and 4", [] { PlaceholderRange(-1, 4); });
  expect_error(kInvalid, "got 2 and",
               [] { PlaceholderRange(2, std::numeric_limits<std::int64_t>::max()); });
  for (const IndexRange& range : {IndexRange{-1, 2}, IndexRange{3, 2}, IndexRange{0, 6}}) {
    expect_error(kInvalid, "not within a placeholder of 5", [&] { (void)kA.embed_range(range); });
  }
}

/// Tokens of "<12.3 seconds>" in front of a temporal patch of Qwen3-VL: one per digit, and five.
std::int64_t timestamp_tokens(double seconds) {
  return std::ssize(std::to_string(static_cast<std::int64_t>(seconds))) + 5;
}

TEST(TimestampTokens, GrowWithTheSeconds) {
  EXPECT_EQ(timestamp_tokens(0.3), 6);
  EXPECT_EQ(timestamp_tokens(9.9), 6);
  EXPECT_EQ(timestamp_tokens(10.0), 7);
  EXPECT_EQ(timestamp_tokens(99.5), 7);
  EXPECT_EQ(timestamp_tokens(123.4), 8);
  EXPECT_EQ(timestamp_tokens(1234.5), 9);
  EXPECT_EQ(timestamp_tokens(12345.6), 10);
}

/// A video of Qwen3-VL: each temporal patch has its timestamp, a start, its rows and an end.
PlaceholderRange qwen3_vl_video(std::int64_t num_patches, std::int64_t rows, double step) {
  std::string mask;
  for (std::int64_t patch = 0; patch < num_patches; ++patch) {
    const std::int64_t text = timestamp_tokens(static_cast<double>(patch) * step) + 1;
    mask.append(static_cast<std::size_t>(text), '0');
    mask.append(static_cast<std::size_t>(rows), '1');
    mask += '0';
  }
  return masked(0, mask);
}

TEST(PlaceholderRange, TakesMorePositionsThanRowsForAVideo) {
  struct Case {
    std::int64_t num_patches;
    std::int64_t rows;
    double step;
    std::int64_t scattered;
    std::int64_t compact;
  };
  // The table of docs/encoder_cache.md.
  for (const Case& c : {Case{8, 322, 1, 2'640, 2'576}, Case{768, 100, 2, 84'693, 76'800},
                        Case{384, 64, 1, 28'306, 24'576}, Case{384, 4, 1, 5'266, 1'536},
                        Case{384, 1, 1, 4'114, 384}}) {
    const PlaceholderRange video = qwen3_vl_video(c.num_patches, c.rows, c.step);
    EXPECT_EQ(video.length(), c.scattered);
    EXPECT_EQ(video.num_embeds(), c.compact);
  }
}

}  // namespace
}  // namespace fovea
