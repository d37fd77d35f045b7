// The buffers of towers over square views: declared, filled and read back.
#include "models/common/views/inputs.h"

#include <gtest/gtest.h>

#include "models/host_inputs.h"
#include "support/expect_error.h"

namespace fovea::common {
namespace {

using Ints = std::vector<std::int32_t>;

/// Views of 8 x 8 pixels in 2 x 2 patches, two of them at a time.
const ViewLayout kLayout{.view = {.side_px = 8, .patch_px = 4},
                         .sequence = {.patches = 4},
                         .tokens = 4,
                         .stages = {7},
                         .views_per_chunk = 2,
                         .chunk_stages = {2, 3}};

/// Fills the buffers of a graph of `capacity` views.
std::byte* fill(test::HostInputs& memory, std::int64_t capacity, std::int64_t views) {
  std::byte* pixels = nullptr;
  memory.fill(
      [&](InputWriter& writer) { pixels = ViewInputs::fill(kLayout, capacity, views, 1, writer); });
  return pixels;
}

/// Views, patches, rows and those of the further stages.
Ints counts(const ViewBatch& batch) {
  Ints values{*batch.views.count, *batch.patches.count, *batch.rows.count};
  for (const LiveRows& rows : batch.stages) values.push_back(*rows.count);
  return values;
}

TEST(SquareView, TokensAreMadeOfNeighboursOrByConvolutions) {
  const SquareView merged{.side_px = 448, .patch_px = 14, .merge = 2};
  EXPECT_EQ(merged.patches(), 1024);
  EXPECT_EQ(merged.tokens(), 256);
  const SquareView convolved{.side_px = 504, .patch_px = 14, .stride = 4};
  EXPECT_EQ(convolved.tokens_side(), 9);
  EXPECT_EQ(convolved.tokens(), 81);
}

TEST(ViewInputs, LiveCountsAreThoseOfTheViewsThatEachChunkHolds) {
  test::HostInputs memory(ViewInputs::declare(kLayout, 5));
  fill(memory, 5, 3);
  const ViewInputs in = ViewInputs::of(kLayout, 5, memory.tensors());
  EXPECT_EQ(counts(in.all), (Ints{3, 12, 15, 21}));
  ASSERT_EQ(in.chunks.size(), 3u);
  EXPECT_EQ(counts(in.chunks[0]), (Ints{2, 8, 10, 4, 6}));
  EXPECT_EQ(counts(in.chunks[1]), (Ints{1, 4, 5, 2, 3}));
  EXPECT_EQ(counts(in.chunks[2]), (Ints{0, 0, 0, 0, 0}));
}

TEST(ViewInputs, AChunkHasItsOwnPatchesAndCountsSequencesFromItsFirst) {
  test::HostInputs memory(ViewInputs::declare(kLayout, 5));
  fill(memory, 5, 5);
  const ViewInputs in = ViewInputs::of(kLayout, 5, memory.tensors());
  const ViewBatch& last = in.chunks.back();
  EXPECT_EQ(last.first, 4);
  EXPECT_EQ(last.count, 1) << "what is left of 5 views in chunks of 2";
  EXPECT_EQ(last.sources.shape, (Shape{4, 4}));
  EXPECT_EQ(test::ints(last.sources, 1), Ints{4 * 192}) << "bytes of a view";
  EXPECT_EQ(last.cu_seqlens.shape, (Shape{2}));
  EXPECT_EQ(test::ints(last.cu_seqlens, 2), (Ints{0, 5}));
}

TEST(ViewInputs, WithoutChunksAllViewsPassTogether) {
  ViewLayout layout = kLayout;
  layout.views_per_chunk = 0;
  test::HostInputs memory(ViewInputs::declare(layout, 5));
  memory.fill([&](InputWriter& writer) { (void)ViewInputs::fill(layout, 5, 4, 1, writer); });
  const ViewInputs in = ViewInputs::of(layout, 5, memory.tensors());
  EXPECT_EQ(counts(in.all), (Ints{4, 16, 20, 28}));
  EXPECT_EQ(in.all.count, 5);
  EXPECT_TRUE(in.chunks.empty());
}

TEST(ViewInputs, EveryViewIsASequenceAndReadsItsOwnPixels) {
  test::HostInputs memory(ViewInputs::declare(kLayout, 5));
  std::byte* const pixels = fill(memory, 5, 2);
  const ViewInputs in = ViewInputs::of(kLayout, 5, memory.tensors());
  EXPECT_EQ(pixels, in.all.pixels.data);
  EXPECT_EQ(test::ints(in.all.cu_seqlens, 3), (Ints{0, 5, 10}));
  // Byte of the first pixel of a patch, bytes of a row of the view, one frame.
  EXPECT_EQ(test::ints(in.all.sources, 4 * 8),
            (Ints{0,   24, 0, 0, 12,  24, 0, 0, 96,  24, 0, 0, 108, 24, 0, 0,
                  192, 24, 0, 0, 204, 24, 0, 0, 288, 24, 0, 0, 300, 24, 0, 0}));
}

TEST(ViewInputs, PatchesOfATokenAreNeighbouringRows) {
  // 4 x 4 patches of 1 pixel, 2 x 2 of them a token.
  const ViewLayout layout{.view = {.side_px = 4, .patch_px = 1, .merge = 2},
                          .sequence = {.patches = 16},
                          .tokens = 4,
                          .stages = {},
                          .chunk_stages = {}};
  test::HostInputs memory(ViewInputs::declare(layout, 1));
  memory.fill([&](InputWriter& writer) { (void)ViewInputs::fill(layout, 1, 1, 1, writer); });
  const Ints sources = test::ints(memory.tensors()["sources"], 4 * 16);
  Ints patches;
  for (std::size_t row = 0; row < 16; ++row) patches.push_back(sources[4 * row] / 3);
  EXPECT_EQ(patches, (Ints{0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15}));
}

TEST(ViewInputs, PlanesOfAViewFollowEachOtherAndAreReadAsFrames) {
  ViewLayout layout = kLayout;
  layout.view.planes = 3;
  EXPECT_EQ(layout.view.pixel_bytes(), 3u * 192);
  test::HostInputs memory(ViewInputs::declare(layout, 2));
  memory.fill([&](InputWriter& writer) { (void)ViewInputs::fill(layout, 2, 2, 1, writer); });
  const ViewInputs in = ViewInputs::of(layout, 2, memory.tensors());
  EXPECT_EQ(in.all.pixels.shape, (Shape{2 * 3 * 192}));
  EXPECT_EQ(test::ints(in.all.sources, 4), (Ints{0, 24, 192, 0}));
  EXPECT_EQ(test::ints(row_range(in.all.sources, 4, 1), 4), (Ints{3 * 192, 24, 192, 0}));
}

TEST(ViewInputs, TheBuffersHoldExactlyTheViewsOfTheGraph) {
  test::HostInputs memory(ViewInputs::declare(kLayout, 3));
  fill(memory, 3, 3);
  for (const BufferDecl& decl : memory.decls()) {
    EXPECT_EQ(memory.rows_of(decl.name), decl.shape[0]) << decl.name;
  }
  test::expect_error(ErrorCode::kUnavailable, "holds 4 rows, the batch needs 5",
                     [&] { fill(memory, 3, 4); });
}

TEST(ViewInputs, RefuseMorePixelsThanOffsetsReach) {
  std::vector<InputWriter::Copy> copies;
  InputWriter writer({}, copies);
  constexpr std::int64_t kViews = (std::int64_t{1} << 31) / (8 * 8 * 3) + 1;
  test::expect_error(ErrorCode::kInvalidArgument, "sub-batch of 9 items: expected at most",
                     [&] { (void)ViewInputs::fill(kLayout, kViews, kViews, 9, writer); });
}

}  // namespace
}  // namespace fovea::common
