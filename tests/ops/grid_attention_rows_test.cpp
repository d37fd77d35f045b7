// What the rows of grid attention may depend on: neither neighbours in the batch nor the number of
// threads change a bit, NaN stays where it is, replays read the live count.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/grid_attention_fixture.h"
#include "support/property.h"

namespace fovea::test {
namespace {

TEST_P(GridAttentionTest, WindowsHaveTheSameBitsAsImagesOfTheirSize) {
  if (!f.exact_rows()) GTEST_SKIP() << "not promised by this backend";
  std::mt19937_64 generator(100);
  const GridSizes square{1, 4, 4, 0, 2, 16};
  const NaiveGridInputs left = random_inputs(generator, square);
  NaiveGridInputs right = left;
  right.qkv = random_inputs(generator, square).qkv;
  /// Two images side by side.
  const auto join = [&](const std::vector<float>& a, const std::vector<float>& b,
                        std::int64_t columns) {
    std::vector<float> joined;
    const std::int64_t row = square.width * columns;
    for (std::int64_t y = 0; y < square.height; ++y) {
      for (const std::vector<float>* part : {&a, &b}) {
        joined.insert(joined.end(), part->begin() + y * row, part->begin() + (y + 1) * row);
      }
    }
    return joined;
  };
  NaiveGridInputs both = left;
  both.qkv = join(left.qkv, right.qkv, 3 * square.channels());
  expect_same_bits(attend({1, 4, 8, 4, 2, 16}, both),
                   join(attend(square, left), attend(square, right), square.channels()));
}

TEST_P(GridAttentionTest, AnImageHasTheSameBitsAloneAndAmongOthers) {
  if (!f.exact_rows()) GTEST_SKIP() << "not promised by this backend";
  for_all(6, [&](std::mt19937_64& generator) {
    const GridSizes s{4,
                      uniform(generator, 1, 24),
                      uniform(generator, 1, 24),
                      uniform(generator, 0, 1) * uniform(generator, 1, 14),
                      uniform(generator, 1, 3),
                      8 * uniform(generator, 1, 10)};
    SCOPED_TRACE(::testing::Message() << s);
    const NaiveGridInputs in = random_inputs(generator, s);
    const std::vector<float> together = attend(s, in);
    GridSizes one = s;
    one.images = 1;
    for (std::int64_t image = 0; image < s.images; ++image) {
      NaiveGridInputs alone = in;
      alone.qkv = image_rows(in.qkv, s, 3 * s.channels(), image, image + 1);
      expect_same_bits(attend(one, alone), image_rows(together, s, s.channels(), image, image + 1));
    }
  });
}

TEST_P(GridAttentionTest, TheNumberOfThreadsDoesNotChangeBits) {
  if (!f.exact_rows()) GTEST_SKIP() << "not promised by this backend";
  std::mt19937_64 generator(110);
  for (const std::int64_t window : {0, 6}) {
    const GridSizes s{2, 20, 23, window, 3, 24};
    const NaiveGridInputs in = random_inputs(generator, s);
    OpFixture alone(GetParam(), 1);
    expect_same_bits(attend(s, in), attend(alone, s, in, s.scale()));
  }
}

TEST_P(GridAttentionTest, NanStaysInItsImage) {
  std::mt19937_64 generator(120);
  for (const GridSizes& s : {GridSizes{3, 4, 5, 0, 2, 16}, GridSizes{3, 4, 5, 3, 2, 16},
                             GridSizes{3, 3, 64, 0, 2, 64}}) {
    NaiveGridInputs in = random_inputs(generator, s);
    const std::vector<float> clean = attend(s, in);
    const std::int64_t image = s.tokens() * 3 * s.channels();
    std::fill(in.qkv.begin() + image, in.qkv.begin() + 2 * image, kNan);
    const std::vector<float> mixed = attend(s, in);
    for (const std::int64_t other : {0, 2}) {
      expect_same_bits(image_rows(mixed, s, s.channels(), other, other + 1),
                       image_rows(clean, s, s.channels(), other, other + 1));
    }
    EXPECT_TRUE(std::isnan(mixed[static_cast<std::size_t>(s.tokens() * s.channels())]));
  }
}

TEST_P(GridAttentionTest, NanStaysInItsWindow) {
  std::mt19937_64 generator(121);
  const GridSizes s{1, 4, 6, 3, 1, 8};  // 2 x 2 windows, the lower ones overhang
  NaiveGridInputs in = random_inputs(generator, s);
  const std::vector<float> clean = attend(s, in);
  std::fill_n(in.qkv.begin(), 3 * s.channels(), kNan);  // the token in the upper left corner
  const std::vector<float> mixed = attend(s, in);
  for (std::int64_t row = 0; row < s.rows(); ++row) {
    const bool same_window = row / s.width < 3 && row % s.width < 3;
    const auto first = static_cast<std::size_t>(row * s.channels());
    if (same_window) {
      EXPECT_TRUE(std::isnan(mixed[first])) << "row " << row;
    } else {
      EXPECT_EQ(mixed[first], clean[first]) << "row " << row;
    }
  }
}

TEST_P(GridAttentionTest, AReplayReadsTheNumberOfImagesAnew) {
  std::mt19937_64 generator(130);
  for (const GridSizes& s : {GridSizes{5, 4, 5, 0, 2, 16}, GridSizes{5, 4, 5, 3, 2, 16},
                             GridSizes{5, 3, 64, 0, 2, 64}}) {
    SCOPED_TRACE(::testing::Message() << s);
    const NaiveGridInputs in = random_inputs(generator, s);
    const GridTensors tensors(f, s, in);
    const Tensor live = f.ints({1}, {5});
    const auto graph = f.capture([&](ExecContext& ctx) {
      ops::grid_attention(ctx, tensors.args(s.scale(), OpFixture::live(live)));
    });
    std::vector<float> first;
    for (const std::int64_t images : {2, 5, 0, 2}) {  // small, large, none, small
      GridSizes here = s;
      here.images = images;
      std::vector<float> rows(in.qkv);
      std::fill(rows.begin() + here.rows() * 3 * s.channels(), rows.end(), kNan);
      f.write(tensors.qkv, rows);
      f.write(live, std::vector<std::int32_t>{static_cast<std::int32_t>(images)});
      f.poison(tensors.out);
      f.stream().replay(*graph);
      const std::vector<float> got = f.read(tensors.out);
      if (images > 0) expect_naive(here, in, got, 17);
      f.expect_untouched(got, here.rows() * s.channels());
      if (images != 2) continue;
      const std::vector<float> written = image_rows(got, s, s.channels(), 0, images);
      if (!first.empty()) expect_same_bits(written, first);
      first = written;
    }
  }
}

TEST_P(GridAttentionTest, RowsBeyondTheLiveOnesAreFinite) {
  // Where a backend writes them at all: what follows in a graph may compute with them.
  if (f.exact_rows()) GTEST_SKIP() << "this backend does not write them";
  std::mt19937_64 generator(140);
  for (const GridSizes& s : {GridSizes{2, 4, 5, 3, 1, 16}, GridSizes{4, 3, 64, 0, 2, 64}}) {
    const GridTensors tensors(f, s, random_inputs(generator, s));
    const Tensor live = f.ints({1}, {1});
    for (const float value : f.run(tensors.out, [&](ExecContext& ctx) {
           ops::grid_attention(ctx, tensors.args(s.scale(), OpFixture::live(live)));
         })) {
      ASSERT_TRUE(std::isfinite(value));
    }
  }
}

}  // namespace
}  // namespace fovea::test
