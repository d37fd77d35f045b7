// Pixels to patch rows, position embeddings and row gathers on every backend. Check values:
// docs/reference/qwen_glm.md, "Patch rows" and "Interpolated positions".
#include "ops/patch.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/expect_error.h"
#include "support/naive_ops.h"
#include "support/op_fixture.h"
#include "support/property.h"

namespace fovea::test {
namespace {

class PatchTest : public ::testing::TestWithParam<OpCase> {
 protected:
  OpFixture f{GetParam()};

  /// The value of every byte per channel: (byte - 255 mean) / (255 std) in f32.
  std::vector<float> clip_table() {
    const float mean[3] = {0.48145466f, 0.4578275f, 0.40821073f};
    const float std[3] = {0.26862954f, 0.26130258f, 0.27577711f};
    std::vector<float> table;
    for (int c = 0; c < 3; ++c) {
      for (int byte = 0; byte < 256; ++byte)
        table.push_back((static_cast<float>(byte) - mean[c] * 255.0f) / (std[c] * 255.0f));
    }
    return table;
  }

  std::vector<std::uint8_t> random_bytes(std::mt19937_64& generator, std::int64_t count) {
    std::vector<std::uint8_t> out;
    for (std::int64_t i = 0; i < count; ++i)
      out.push_back(static_cast<std::uint8_t>(uniform(generator, 0, 255)));
    return out;
  }
};

INSTANTIATE_TEST_SUITE_P(Devices, PatchTest, ::testing::ValuesIn(op_cases()), op_case_name);

/// Patch positions of a grid in merge-block order, merge size 2.
std::vector<std::array<std::int32_t, 2>> merge_order(std::int32_t height, std::int32_t width) {
  std::vector<std::array<std::int32_t, 2>> out;
  for (std::int32_t block_y = 0; block_y < height / 2; ++block_y) {
    for (std::int32_t block_x = 0; block_x < width / 2; ++block_x) {
      for (std::int32_t y = 0; y < 2; ++y) {
        for (std::int32_t x = 0; x < 2; ++x) out.push_back({2 * block_y + y, 2 * block_x + x});
      }
    }
  }
  return out;
}

/// Sources of one image or video that starts at `offset`.
std::vector<std::int32_t> sources_of(std::int32_t grid_h, std::int32_t grid_w, std::int32_t patch,
                                     std::int32_t offset, std::int32_t frame_stride) {
  std::vector<std::int32_t> out;
  const std::int32_t row_stride = 3 * patch * grid_w;
  for (const auto [y, x] : merge_order(grid_h, grid_w))
    out.insert(out.end(),
               {offset + y * patch * row_stride + x * patch * 3, row_stride, frame_stride, 0});
  return out;
}

TEST_P(PatchTest, PutsThePixelsOfTheSpecifiedExampleInPlace) {
  // Patch 14, grid 4 x 6: row 4 is the patch at (0, 2), pixel origin y = 0, x = 28; the column of
  // channel 1, frame 1, y 3, x 5 is 635.
  const std::int64_t pixel = (3 * 84 + 28 + 5) * 3 + 1;
  std::vector<std::uint8_t> pixels(56 * 84 * 3, 0);
  pixels[static_cast<std::size_t>(pixel)] = 200;
  std::vector<float> table(768, 0.0f);
  table[256 + 200] = 2.5f;
  const Tensor bytes = f.bytes(pixels);
  const Tensor sources = f.ints({24, 4}, sources_of(4, 6, 14, 0, 0));
  const Tensor values = f.floats({3, 256}, table);
  const Tensor out = f.poisoned({24, 1176});
  const auto got = f.run(out, [&](ExecContext& ctx) {
    ops::patchify(ctx, {.pixels = bytes.view(),
                        .sources = sources.view(),
                        .table = values.view(),
                        .patch_size = 14,
                        .temporal_patch_size = 2,
                        .out = out.view()});
  });
  std::vector<float> want(24 * 1176, 0.0f);
  want[4 * 1176 + 635] = 2.5f;
  want[4 * 1176 + 635 - 196] = 2.5f;  // the still is its own second frame
  expect_same_bits(got, want);
}

TEST_P(PatchTest, IsExactForStillsAndVideosOfAnyPatchSize) {
  struct Case {
    std::int32_t patch, frames, grid_h, grid_w;
  };
  for (const auto [patch, frames, grid_h, grid_w] :
       {Case{14, 2, 4, 6}, Case{16, 2, 2, 8}, Case{16, 1, 6, 2}, Case{1, 3, 2, 2},
        Case{5, 2, 2, 4}}) {
    SCOPED_TRACE(patch);
    std::mt19937_64 generator(static_cast<std::uint64_t>(patch));
    const std::int32_t image = grid_h * grid_w * patch * patch * 3;
    // A still that repeats its frame, and behind it a video with frames one after the other.
    const auto pixels = random_bytes(generator, (1 + frames) * image);
    std::vector<std::int32_t> sources = sources_of(grid_h, grid_w, patch, 0, 0);
    const auto video = sources_of(grid_h, grid_w, patch, image, image);
    sources.insert(sources.end(), video.begin(), video.end());
    const auto rows = static_cast<std::int64_t>(sources.size()) / 4;
    const std::int64_t cols = 3 * frames * patch * patch;
    const auto want = naive_patchify(pixels, sources, clip_table(), patch, frames);
    sources.insert(sources.end(), {-5, -5, -5, -5});  // one row beyond the live ones
    const Tensor bytes = f.bytes(pixels);
    const Tensor where = f.ints({rows + 1, 4}, sources);
    const Tensor table = f.floats({3, 256}, clip_table());
    const Tensor live = f.ints({1}, {static_cast<std::int32_t>(rows)});
    const Tensor out = f.poisoned({rows + 1, cols});
    auto got = f.run(out, [&, patch = patch, frames = frames](ExecContext& ctx) {
      ops::patchify(ctx, {.pixels = bytes.view(),
                          .sources = where.view(),
                          .table = table.view(),
                          .patch_size = patch,
                          .temporal_patch_size = frames,
                          .rows = OpFixture::live(live),
                          .out = out.view()});
    });
    f.expect_untouched(got, rows * cols);
    EXPECT_TRUE(std::isnan(got.back())) << "a row beyond the live ones was written";
    got.resize(want.size());
    expect_same_bits(got, f.rounded(want));
  }
}

TEST_P(PatchTest, RefusesSourcesOutsideThePixels) {
  if (!f.exact_rows()) GTEST_SKIP() << "sources in device memory are not checked";
  const Tensor bytes = f.bytes(std::vector<std::uint8_t>(24, 1));
  const Tensor table = f.floats({3, 256}, clip_table());
  const Tensor out = f.poisoned({1, 24});
  const auto expect = [&](const std::string& message, const std::vector<std::int32_t>& source) {
    const Tensor sources = f.ints({1, 4}, source);
    ExecContext ctx = f.ctx();
    expect_error(ErrorCode::kInternal, message, [&] {
      ops::patchify(ctx, {.pixels = bytes.view(),
                          .sources = sources.view(),
                          .table = table.view(),
                          .patch_size = 2,
                          .temporal_patch_size = 2,
                          .out = out.view()});
    });
  };
  expect("patchify: row 0 reads bytes 13..25 of 24", {13, 6, 0, 0});
  expect("patchify: row 0 reads bytes 0..25 of 24", {0, 6, 13, 0});
  expect("patchify: row 0 reads bytes -1..", {-1, 6, 0, 0});
  expect("patchify: row 0 reads bytes 12..", {12, -6, 0, 0});
}

TEST_P(PatchTest, PatchifyNamesWhatIsWrongWithItsArguments) {
  const Tensor bytes = f.bytes(std::vector<std::uint8_t>(24, 1));
  const Tensor table = f.floats({3, 256}, clip_table());
  const Tensor sources = f.ints({2, 4}, std::vector<std::int32_t>(8, 0));
  const Tensor out = f.poisoned({2, 24});
  const ops::PatchifyArgs good{.pixels = bytes.view(),
                               .sources = sources.view(),
                               .table = table.view(),
                               .patch_size = 2,
                               .temporal_patch_size = 2,
                               .out = out.view()};
  const auto expect = [&](const std::string& message, const auto& change) {
    ops::PatchifyArgs args = good;
    change(args);
    ExecContext ctx = f.ctx();
    expect_error(ErrorCode::kInvalidArgument, message, [&] { ops::patchify(ctx, args); });
  };
  expect("patch_size and temporal_patch_size must be > 0, got 0 and 2",
         [](auto& a) { a.patch_size = 0; });
  expect("patch_size and temporal_patch_size must be > 0, got 2 and -1",
         [](auto& a) { a.temporal_patch_size = -1; });
  expect("out must be float32, float16 or bfloat16, got uint8",
         [](auto& a) { a.out.dtype = DType::kU8; });
  expect("[2, 24], got", [](auto& a) { a.out.shape = {2, 12}; });
  expect("pixels must be uint8 [bytes], got shape [2, 12]", [](auto& a) {
    a.pixels.shape = {2, 12};
  });
  expect("pixels must be uint8 [24], got int32 [24]",
         [](auto& a) { a.pixels.dtype = DType::kI32; });
  expect("sources must be int32 [2, 4], got int32 [1, 4]", [](auto& a) {
    a.sources.shape = {1, 4};
  });
  expect("table must be float32 [3, 256], got float32 [768]",
         [](auto& a) { a.table.shape = {768}; });
}

/// positions of every patch of one grid in merge-block order
std::vector<std::int32_t> positions_of(std::int32_t height, std::int32_t width) {
  std::vector<std::int32_t> out;
  for (const auto [y, x] : merge_order(height, width)) out.insert(out.end(), {y, x, height, width});
  return out;
}

TEST_P(PatchTest, PositionsOfToyTables) {
  std::vector<float> table;  // E[k] = k on a 4 x 4 grid
  for (int k = 0; k < 16; ++k) table.push_back(static_cast<float>(k));
  const Tensor device_table = f.floats({16, 1}, table);
  const auto interpolate = [&](std::int32_t height, std::int32_t width) {
    const Tensor positions = f.ints({height * width, 4}, positions_of(height, width));
    const Tensor x = f.poisoned({height * width, 1});
    const std::vector<float> zeros(static_cast<std::size_t>(height * width), 0.0f);
    return f.run_in_place(x, zeros, [&](ExecContext& ctx) {
      ops::add_positions_bilinear(
          ctx,
          {.table = device_table.view(), .positions = positions.view(), .side = 4, .x = x.view()});
    });
  };
  f.expect_close(interpolate(2, 6), {0, .6, 12, 12.6, 1.2, 1.8, 13.2, 13.8, 2.4, 3, 14.4, 15},
                 OpClass::kPointwise);
  f.expect_close(interpolate(6, 4), {0,   1,   2.4, 3.4,  2,   3,    4.4, 5.4, 4.8,  5.8,  7.2, 8.2,
                                     6.8, 7.8, 9.2, 10.2, 9.6, 10.6, 12,  13,  11.6, 12.6, 14,  15},
                 OpClass::kPointwise);
}

TEST_P(PatchTest, NeighboursAndWeightsOfTheSpecifiedGrid) {
  // Grid 4 x 6 on a table of side 48: one column per expected neighbour of every row below, 1 at
  // that neighbour, so that the result is the weight.
  struct Row {
    std::int32_t y, x;
    std::array<std::int64_t, 4> index;
    std::array<double, 4> weight;
  };
  const std::vector<Row> rows{
      {0, 0, {0, 1, 48, 49}, {1, 0, 0, 0}},
      {0, 1, {9, 10, 57, 58}, {.6000004, .3999996, 0, 0}},
      {1, 0, {720, 721, 768, 769}, {.333333, 0, .666667, 0}},
      {1, 1, {729, 730, 777, 778}, {.1999999, .1333331, .4000004, .2666665}},
      {0, 2, {18, 19, 66, 67}, {.2000008, .7999992, 0, 0}},
      {0, 3, {28, 29, 76, 77}, {.7999992, .2000008, 0, 0}},
      {1, 2, {738, 739, 786, 787}, {.0666669, .2666662, .1333339, .5333331}},
      {1, 3, {748, 749, 796, 797}, {.2666662, .0666669, .5333331, .1333339}},
      {3, 5, {2303, 2303, 2303, 2303}, {1, 1, 1, 1}},  // all neighbours are one entry
  };
  const std::size_t cols = 4 * rows.size();
  std::vector<float> table(48 * 48 * cols, 0.0f);
  std::vector<std::int32_t> positions;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t i = 0; i < 4; ++i)
      table[static_cast<std::size_t>(rows[r].index[i]) * cols + 4 * r + i] = 1.0f;
    positions.insert(positions.end(), {rows[r].y, rows[r].x, 4, 6});
  }
  const auto num_rows = static_cast<std::int64_t>(rows.size());
  const auto num_cols = static_cast<std::int64_t>(cols);
  const Tensor device_table = f.floats({48 * 48, num_cols}, table);
  const Tensor where = f.ints({num_rows, 4}, positions);
  const Tensor x = f.poisoned({num_rows, num_cols});
  const std::vector<float> zeros(rows.size() * cols, 0.0f);
  const auto got = f.run_in_place(x, zeros, [&](ExecContext& ctx) {
    ops::add_positions_bilinear(
        ctx, {.table = device_table.view(), .positions = where.view(), .side = 48, .x = x.view()});
  });
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t i = 0; i < 4; ++i) {
      const double slack = f.dtype() == DType::kF32 ? 6e-8 : 2e-3;  // printed digits; one rounding
      EXPECT_NEAR(got[r * cols + 4 * r + i], rows[r].weight[i], slack)
          << "row " << r << " neighbour " << i;
    }
  }
}

TEST_P(PatchTest, PositionsMatchDoublePrecisionForAnyGrid) {
  for_all(10, [&](std::mt19937_64& generator) {
    const std::int64_t side = uniform(generator, 1, 9);
    const std::int64_t cols = uniform(generator, 1, 70);
    const auto height = static_cast<std::int32_t>(2 * uniform(generator, 1, 8));
    const auto width = static_cast<std::int32_t>(2 * uniform(generator, 1, 8));
    auto positions = positions_of(height, width);
    positions.insert(positions.end(), {0, 0, 1, 1});  // a grid of one patch
    const auto rows = static_cast<std::int64_t>(positions.size()) / 4;
    const auto table = normal_values(generator, side * side * cols);
    auto before = f.rounded(normal_values(generator, rows * cols));
    const auto want = naive_add_positions(before, table, positions, side);
    before.resize(before.size() + static_cast<std::size_t>(cols), 7.0f);
    positions.insert(positions.end(), {-1, -1, -1, -1});
    const Tensor device_table = f.floats({side * side, cols}, table);
    const Tensor where = f.ints({rows + 1, 4}, positions);
    const Tensor live = f.ints({1}, {static_cast<std::int32_t>(rows)});
    const Tensor x = f.poisoned({rows + 1, cols});
    const auto got = f.run_in_place(x, before, [&](ExecContext& ctx) {
      ops::add_positions_bilinear(ctx, {.table = device_table.view(),
                                        .positions = where.view(),
                                        .side = side,
                                        .rows = OpFixture::live(live),
                                        .x = x.view()});
    });
    // Two roundings where the dtype is narrow: of the interpolated value and of the sum.
    f.expect_close(got, want, f.dtype() == DType::kF32 ? OpClass::kNorm : OpClass::kAttention);
    f.expect_untouched(got, rows * cols, before);
  });
}

TEST_P(PatchTest, RefusesPositionsOutsideTheirGrid) {
  if (!f.exact_rows()) GTEST_SKIP() << "positions in device memory are not checked";
  const Tensor table = f.floats({4, 1}, {0, 1, 2, 3});
  const Tensor x = f.poisoned({1, 1});
  for (const auto& position :
       {std::vector<std::int32_t>{2, 0, 2, 2}, {0, 2, 2, 2}, {-1, 0, 2, 2}}) {
    const Tensor positions = f.ints({1, 4}, position);
    ExecContext ctx = f.ctx();
    expect_error(ErrorCode::kInternal, "add_positions_bilinear: row 0 is at (", [&] {
      ops::add_positions_bilinear(
          ctx, {.table = table.view(), .positions = positions.view(), .side = 2, .x = x.view()});
    });
  }
}

TEST_P(PatchTest, AddPositionsNamesWhatIsWrongWithItsArguments) {
  const Tensor table = f.floats({4, 3}, std::vector<float>(12, 0.0f));
  const Tensor positions = f.ints({2, 4}, std::vector<std::int32_t>(8, 0));
  const Tensor x = f.poisoned({2, 3});
  const ops::AddPositionsArgs good{
      .table = table.view(), .positions = positions.view(), .side = 2, .x = x.view()};
  const auto expect = [&](const std::string& message, const auto& change) {
    ops::AddPositionsArgs args = good;
    change(args);
    ExecContext ctx = f.ctx();
    expect_error(ErrorCode::kInvalidArgument, message,
                 [&] { ops::add_positions_bilinear(ctx, args); });
  };
  expect("side must be > 0, got 0", [](auto& a) { a.side = 0; });
  expect("x must have rank 2", [](auto& a) { a.x.shape = {6}; });
  expect("table must be float32 [9, 3], got float32 [4, 3]", [](auto& a) { a.side = 3; });
  expect("positions must be int32 [2, 4], got int32 [2, 2]", [](auto& a) {
    a.positions.shape = {2, 2};
  });
}

TEST_P(PatchTest, GathersRowsInAnyOrder) {
  std::mt19937_64 generator(7);
  const std::int64_t cols = 37;
  const auto x = f.rounded(normal_values(generator, 20 * cols));
  std::vector<std::int32_t> index;
  std::vector<float> want;
  for (int r = 0; r < 50; ++r) {  // with repetitions
    const auto row = uniform(generator, 0, 19);
    index.push_back(static_cast<std::int32_t>(row));
    want.insert(want.end(), x.begin() + row * cols, x.begin() + (row + 1) * cols);
  }
  index.insert(index.end(), {-1, 1000});  // beyond the live rows
  const Tensor in = f.activations({20, cols}, x);
  const Tensor which = f.ints(
      {
          52,
      },
      index);
  const Tensor live = f.ints({1}, {50});
  const Tensor out = f.poisoned({52, cols});
  auto got = f.run(out, [&](ExecContext& ctx) {
    ops::gather_rows(
        ctx,
        {.x = in.view(), .index = which.view(), .rows = OpFixture::live(live), .out = out.view()});
  });
  f.expect_untouched(got, 50 * cols);
  got.resize(want.size());
  expect_same_bits(got, want);
}

TEST_P(PatchTest, RefusesToGatherRowsThatDoNotExist) {
  if (!f.exact_rows()) GTEST_SKIP() << "indices in device memory are not checked";
  const Tensor in = f.poisoned({2, 3});
  const Tensor out = f.poisoned({1, 3});
  for (const std::int32_t row : {-1, 2}) {
    const Tensor index = f.ints({1}, {row});
    ExecContext ctx = f.ctx();
    expect_error(ErrorCode::kInternal, cat("gather_rows: row 0 wants row ", row, " of 2"), [&] {
      ops::gather_rows(ctx, {.x = in.view(), .index = index.view(), .out = out.view()});
    });
  }
}

TEST_P(PatchTest, GatherRowsNamesWhatIsWrongWithItsArguments) {
  const Tensor in = f.poisoned({2, 3});
  const Tensor out = f.poisoned({4, 3});
  const Tensor index = f.ints({4}, {0, 1, 0, 1});
  const ops::GatherRowsArgs good{.x = in.view(), .index = index.view(), .out = out.view()};
  const auto expect = [&](const std::string& message, const auto& change) {
    ops::GatherRowsArgs args = good;
    change(args);
    ExecContext ctx = f.ctx();
    expect_error(ErrorCode::kInvalidArgument, message, [&] { ops::gather_rows(ctx, args); });
  };
  expect("gather_rows: x must have rank 2", [](auto& a) { a.x.shape = {6}; });
  expect("gather_rows: out must have rank 2", [](auto& a) { a.out.shape = {12}; });
  expect("gather_rows: out must be", [](auto& a) { a.out.shape = {3, 4}; });
  expect("gather_rows: index must be int32 [4], got int32 [3]",
         [](auto& a) { a.index.shape = {3}; });
  expect("gather_rows: out and x must not overlap", [](auto& a) { a.x.data = a.out.data; });
}

TEST_P(PatchTest, NoRowsIsLegal) {
  const Tensor empty = make_tensor(f.device(), f.dtype(), {0, 12});
  const Tensor places = make_tensor(f.device(), DType::kI32, {0, 4});
  const Tensor none = make_tensor(f.device(), DType::kI32, {0});
  const Tensor bytes = make_tensor(f.device(), DType::kU8, {0});
  const Tensor bytes_table = f.floats({3, 256}, clip_table());
  const Tensor table = f.floats({1, 12}, std::vector<float>(12, 0.0f));
  ExecContext ctx = f.ctx();
  EXPECT_NO_THROW(ops::patchify(ctx, {.pixels = bytes.view(),
                                      .sources = places.view(),
                                      .table = bytes_table.view(),
                                      .patch_size = 2,
                                      .temporal_patch_size = 1,
                                      .out = empty.view()}));
  EXPECT_NO_THROW(ops::add_positions_bilinear(
      ctx, {.table = table.view(), .positions = places.view(), .side = 1, .x = empty.view()}));
  const Tensor other = make_tensor(f.device(), f.dtype(), {0, 12});
  EXPECT_NO_THROW(
      ops::gather_rows(ctx, {.x = empty.view(), .index = none.view(), .out = other.view()}));
}

}  // namespace
}  // namespace fovea::test
