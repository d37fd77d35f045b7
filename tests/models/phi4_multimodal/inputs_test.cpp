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
Processing small() {
  return {
      .view = {.side_px = 16, .patch_px = 4}, .dynamic_hd = 2, .assumptions = {}, .sources = {}};
}

TEST(Phi4MultimodalInputs, PaddingComesBehindAllPatches) {
  const Processor processor(small());
  const ItemPlan plan = processor.plan_image(62, 40);
  ASSERT_EQ(plan.grid, (std::array<std::int64_t, 3>{1, 1, 2}));
  const Placement place = place_image(small(), 62, 40);
  ASSERT_EQ(place.width_px, 24);
  EXPECT_EQ(place.cols, 6) << "8 pixels to the right are 2 whole patches";
  EXPECT_EQ(place.rows, 4);
  PreparedItem item{.plan = plan, .pixels = std::vector<std::uint8_t>(plan.pixel_bytes)};
  const ItemPart part = ItemPart::whole(item, 0);
  test::HostInputs inputs(Inputs::declare(small().view, plan.spec.out_rows));
  inputs.fill([&](InputWriter& w) { Inputs::fill(small(), {&part, 1}, w); });
  const NamedTensors named = inputs.tensors();
  const auto* const offsets = named["cu_seqlens"].as<std::int32_t>();
  EXPECT_EQ(inputs.rows_of("cu_seqlens"), 4);
  EXPECT_EQ(std::vector<std::int32_t>(offsets, offsets + 4),
            (std::vector<std::int32_t>{0, 16, 32, 40}));
  const auto* const live = named["live"].as<std::int32_t>();
  EXPECT_EQ(live[0], 40);
  EXPECT_EQ(live[2], 0) << "6 columns are whole tokens: no padding";
  EXPECT_EQ(plan.spec.out_rows, 4 + 2 + 1 + 2 * 3 + 2);
}

TEST(Phi4MultimodalInputs, OddEdgesHavePadding) {
  const Placement place = place_image(small(), 64, 40);
  ASSERT_EQ(place.width_px, 25);
  ASSERT_EQ(place.cols, 7) << "7 pixels to the right are one whole patch";
  const Processor processor(small());
  const ItemPlan plan = processor.plan_image(64, 40);
  PreparedItem item{.plan = plan, .pixels = std::vector<std::uint8_t>(plan.pixel_bytes)};
  const ItemPart part = ItemPart::whole(item, 0);
  test::HostInputs inputs(Inputs::declare(small().view, plan.spec.out_rows));
  inputs.fill([&](InputWriter& w) { Inputs::fill(small(), {&part, 1}, w); });
  const NamedTensors named = inputs.tensors();
  const auto* const offsets = named["cu_padding"].as<std::int32_t>();
  EXPECT_EQ(std::vector<std::int32_t>(offsets, offsets + 4),
            (std::vector<std::int32_t>{44, 44, 44, 48}));
  const auto* const live = named["live"].as<std::int32_t>();
  EXPECT_EQ(live[0], 48);
  EXPECT_EQ(live[2], 48);
  EXPECT_EQ(live[3], 3);
  const auto* const pooled = named["pooled"].as<std::int32_t>();
  // The last token of the first row: the last column of patches of the third view, and padding.
  EXPECT_EQ(std::vector<std::int32_t>(pooled + 12, pooled + 16),
            (std::vector<std::int32_t>{34, 44, 37, 45}));
}

}  // namespace
}  // namespace fovea::phi4_multimodal
