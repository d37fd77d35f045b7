// Canvases: which one, how an image lies on it, which of its rows show the image. Numbers are those
// of transformers 5.24.
#include "models/common/views/canvas.h"

#include <gtest/gtest.h>

#include <vector>

#include "support/expect_error.h"

namespace fovea::common {
namespace {

const std::vector<Tiling> kFive{{2, 1}, {1, 2}, {2, 2}, {1, 3}, {3, 1}};

TEST(BestCanvas, KeepsMostPixelsAndWastesLeast) {
  EXPECT_EQ(best_canvas({1080, 1920}, kFive, 336), (Tiling{2, 2}));
  EXPECT_EQ(best_canvas({90, 2000}, kFive, 336), (Tiling{3, 1}));
  EXPECT_EQ(best_canvas({500, 40}, kFive, 336), (Tiling{1, 2}));
  EXPECT_EQ(best_canvas({1, 1}, kFive, 336), (Tiling{2, 1})) << "the first of equal ones";
}

TEST(FittedSize, FillsACanvasAlongOneAxis) {
  EXPECT_EQ(fitted_size({1754, 1240}, {672, 672}), (Size2d{672, 476}));
  EXPECT_EQ(fitted_size({1080, 1920}, {672, 672}), (Size2d{378, 672}));
  EXPECT_EQ(fitted_size({673, 672}, {672, 672}), (Size2d{672, 672})) << "rounded up";
  EXPECT_EQ(fitted_size({1, 1}, {336, 672}), (Size2d{336, 336}));
}

TEST(CanvasRows, LeaveOutThePadding) {
  const CanvasRows wide = canvas_rows({1080, 1920}, {2, 2}, 24, 0);
  EXPECT_EQ(wide.window, (Window{.top = 10, .left = 0, .height = 28, .width = 48}));
  EXPECT_FALSE(wide.is_shrunk());
  const CanvasRows thin = canvas_rows({3, 5000}, {2, 1}, 24, 0);
  EXPECT_EQ(thin.window.height, 0);
}

TEST(CanvasRows, AreShrunkWhereThereAreManyMore) {
  const CanvasRows large = canvas_rows({1754, 1240}, {4, 5}, 27, 9);
  EXPECT_EQ(large.window, (Window{.top = 0, .left = 6, .height = 135, .width = 96}));
  EXPECT_EQ(large.grid, (Size2d{96, 68}));
  EXPECT_TRUE(large.is_shrunk());
  EXPECT_FALSE(canvas_rows({1000, 1000}, {3, 3}, 27, 9).is_shrunk()) << "as many as 9 views";
  test::expect_error(ErrorCode::kInvalidArgument, "too narrow to be shrunk to 4 rows", [] {
    (void)canvas_rows({10, 1000}, {100, 1}, 2, 1);
  });
}

TEST(ReadCanvases, TakesSizesOfWholeViews) {
  const auto read = [](const std::string& text) {
    const JsonDocument document = JsonDocument::parse(text, "sizes");
    return read_canvases(document.root(), 336);
  };
  EXPECT_EQ(read("[[336, 672], [1008, 336]]"), (std::vector<Tiling>{{2, 1}, {1, 3}}));
  test::expect_error(ErrorCode::kUnsupported, "336x500 is not a multiple of views of 336 pixels",
                     [&] { (void)read("[[336, 500]]"); });
  test::expect_error(ErrorCode::kUnsupported, "expected at most 67108864 pixels, got 33600x3360",
                     [&] { (void)read("[[33600, 3360]]"); });
  test::expect_error(ErrorCode::kCorruptData, "expected at least one size",
                     [&] { (void)read("[]"); });
  test::expect_error(ErrorCode::kCorruptData, "expected 2 numbers, got 3",
                     [&] { (void)read("[[1, 2, 3]]"); });
}

}  // namespace
}  // namespace fovea::common
