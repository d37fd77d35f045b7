// Pixels to patch rows on every backend. Check values: docs/reference/qwen_glm.md, "Patch rows".
#include "fovea/tower/ops/patch.h"

#include <gtest/gtest.h>

#include <cmath>

#include "ops/merge_order.h"
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

/// Sources of patches that are planes of their own, one patch after the other.
std::vector<std::int32_t> sources_of_planes(std::int32_t count, std::int32_t patch,
                                            std::int32_t offset, std::int32_t frames) {
  const std::int32_t plane = patch * patch;
  std::vector<std::int32_t> out;
  for (std::int32_t r = 0; r < count; ++r) {
    out.insert(out.end(),
               {offset + r * 3 * frames * plane, patch, frames > 1 ? plane : 0, frames * plane});
  }
  return out;
}

TEST_P(PatchTest, PutsThePixelsOfAWorkedExampleInPlace) {
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
    // A still that repeats its frame, behind it a video with frames one after the other, and both
    // as planes of each patch.
    const auto pixels = random_bytes(generator, 2 * (1 + frames) * image);
    const std::int32_t count = grid_h * grid_w;
    std::vector<std::int32_t> sources = sources_of(grid_h, grid_w, patch, 0, 0);
    for (const auto& more : {sources_of(grid_h, grid_w, patch, image, image),
                             sources_of_planes(count, patch, (1 + frames) * image, 1),
                             sources_of_planes(count, patch, (2 + frames) * image, frames)}) {
      sources.insert(sources.end(), more.begin(), more.end());
    }
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
  expect("patchify: row 0 reads bytes 0..25 of 24", {0, 2, 3, 9});
  expect("patchify: row 0 reads bytes 0..", {0, 2, 0, -4});
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

TEST_P(PatchTest, NoRowsIsLegal) {
  const Tensor places = make_tensor(f.device(), DType::kI32, {0, 4});
  const Tensor bytes = make_tensor(f.device(), DType::kU8, {0});
  const Tensor bytes_table = f.floats({3, 256}, clip_table());
  const Tensor empty = make_tensor(f.device(), f.dtype(), {0, 12});
  ExecContext ctx = f.ctx();
  EXPECT_NO_THROW(ops::patchify(ctx, {.pixels = bytes.view(),
                                      .sources = places.view(),
                                      .table = bytes_table.view(),
                                      .patch_size = 2,
                                      .temporal_patch_size = 1,
                                      .out = empty.view()}));
}

}  // namespace
}  // namespace fovea::test
