// Rows of Phi-4-multimodal: places of patches, padding behind all patches, tokens and separators.
#include "models/phi4_multimodal/inputs.h"

#include <gtest/gtest.h>

#include "models/host_inputs.h"

namespace fovea::phi4_multimodal {
namespace {

TEST(Phi4MultimodalInputs, PatchesOfAPartAreStretchedOverAllPositions) {
  for (std::int64_t i = 0; i < 32; ++i) EXPECT_EQ(position_of(i, 32, 32), i);
  for (std::int64_t i = 0; i < 16; ++i) EXPECT_EQ(position_of(i, 16, 32), 2 * i);
  EXPECT_EQ(position_of(0, 1, 32), 0);
  EXPECT_EQ(position_of(2, 3, 32), 21);
}

/// Views of 4 x 4 patches of 4 pixels.
Processor small() {
  const common::SquareView view{
      .side_px = 16, .patch_px = 4, .merge = 2, .planes = media::kLevelBytes};
  return Processor({.views = {.view = view, .assumptions = {}, .sources = {}}, .dynamic_hd = 2});
}

/// The inputs of one image.
struct ImageInputs {
  ImageInputs(const Processor& processor, const ItemPlan& plan)
      : item{.plan = plan, .pixels = std::vector<std::uint8_t>(plan.pixel_bytes)},
        inputs(Inputs::declare(processor, capacity())) {
    const ItemPart part = ItemPart::whole(item, 0);
    inputs.fill([&](InputWriter& w) { Inputs::fill(processor, capacity(), {&part, 1}, w); });
  }
  [[nodiscard]] GraphCapacity capacity() const {
    return {.tokens = item.plan.spec.out_rows, .items = 1, .seqs = 1};
  }
  [[nodiscard]] std::vector<std::int32_t> ints(const char* name, std::int64_t count) {
    return test::ints(inputs.tensors()[name], count);
  }

  PreparedItem item;
  test::HostInputs inputs;
};

using Ints = std::vector<std::int32_t>;

TEST(Phi4MultimodalInputs, PaddingComesBehindAllPatches) {
  const Processor processor = small();
  const ItemPlan plan = processor.plan_image(62, 40);
  ASSERT_EQ(plan.grid, (std::array<std::int64_t, 3>{1, 1, 2}));
  ASSERT_EQ(plan.resized_width_px, 24);
  const View last = processor.views_of(plan).back();
  EXPECT_EQ(last.x + last.cols, 6) << "8 pixels to the right are 2 whole patches";
  EXPECT_EQ(last.rows, 4);
  EXPECT_EQ(plan.spec.out_rows, 4 + 2 + 1 + 2 * 3 + 2);
  ImageInputs image(processor, plan);
  EXPECT_EQ(image.inputs.rows_of("cu_seqlens"), 4);
  EXPECT_EQ(image.ints("cu_seqlens", 4), (Ints{0, 16, 32, 40}));
  EXPECT_EQ(image.ints("live", 1), (Ints{40}));
  EXPECT_EQ(image.ints("live_rows", 3), (Ints{0, 40, 15}))
      << "6 columns are whole tokens: no padding";
}

TEST(Phi4MultimodalInputs, OddEdgesHavePadding) {
  const Processor processor = small();
  const ItemPlan plan = processor.plan_image(64, 40);
  ASSERT_EQ(plan.resized_width_px, 25);
  EXPECT_EQ(processor.views_of(plan).back().cols, 3) << "7 pixels to the right are a whole patch";
  ImageInputs image(processor, plan);
  EXPECT_EQ(image.ints("cu_padding", 5), (Ints{44, 44, 44, 45, 45}));
  EXPECT_EQ(image.ints("cu_seqlens", 5), (Ints{0, 16, 32, 44, 45}));
  EXPECT_EQ(image.ints("live", 1), (Ints{45}));
  EXPECT_EQ(image.ints("live_rows", 1), (Ints{45}));
  // The last token of the first row: the last column of patches of the third view, and padding,
  // all of which is one row.
  const Ints pooled = image.ints("pooled", 16);
  EXPECT_EQ(Ints(pooled.begin() + 12, pooled.end()), (Ints{34, 44, 37, 44}));
}

TEST(Phi4MultimodalInputs, ViewsOfOneTokenHaveRoomForTheirPadding) {
  const common::SquareView view{
      .side_px = 24, .patch_px = 12, .merge = 2, .planes = media::kLevelBytes};
  const Processor processor(
      {.views = {.view = view, .assumptions = {}, .sources = {}}, .dynamic_hd = 6});
  const ItemPlan plan = processor.plan_image(144, 12);
  EXPECT_EQ(plan.spec.out_rows, 6 + 1 + 1 + 2);
  ImageInputs image(processor, plan);
  EXPECT_EQ(image.inputs.rows_of("cu_seqlens"), 1 + 7 + 6);
}

}  // namespace
}  // namespace fovea::phi4_multimodal
