// Windows of Qwen2.5-VL: orders worked out with the reference, and the buffers of a batch.
#include "models/qwen2_5_vl/windows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "models/host_inputs.h"

namespace fovea::qwen2_5_vl {
namespace {

using Grid = std::array<std::int64_t, 3>;
using Ints = std::vector<std::int32_t>;

constexpr common::GridGeometry kGeometry{.patch_size = 14};
constexpr std::int64_t kSide = 4;  // tokens a side of a window of 112 pixels

WindowOrder order_of(const std::vector<Grid>& grids, std::int64_t side = kSide) {
  WindowOrder order;
  for (const Grid& grid : grids) order.append(grid, kGeometry, side);
  return order;
}

Ints ascending(std::int32_t count) {
  Ints all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

TEST(WindowOrder, AGridWithinOneWindowKeepsItsOrder) {
  EXPECT_EQ(order_of({{1, 4, 6}}).tokens, ascending(6));
  EXPECT_EQ(order_of({{1, 4, 6}}).cu_seqlens, (Ints{0, 24}));
  EXPECT_EQ(order_of({{1, 8, 8}}).tokens, ascending(16));
  EXPECT_EQ(order_of({{1, 8, 8}}).cu_seqlens, (Ints{0, 64}));
}

TEST(WindowOrder, WindowsAtTheEdgesAreSmaller) {
  EXPECT_EQ(order_of({{1, 10, 12}}).tokens,
            (Ints{0,  1,  2,  3,  6,  7,  8,  9,  12, 13, 14, 15, 18, 19, 20, 21,  //
                  4,  5,  10, 11, 16, 17, 22, 23,                                  //
                  24, 25, 26, 27,                                                  //
                  28, 29}));
  EXPECT_EQ(order_of({{1, 10, 12}}).cu_seqlens, (Ints{0, 64, 96, 112, 120}));
  EXPECT_EQ(order_of({{1, 12, 20}}).cu_seqlens, (Ints{0, 64, 128, 160, 192, 224, 240}));
  EXPECT_EQ(order_of({{1, 12, 20}}).tokens,
            (Ints{0,  1,  2,  3,  10, 11, 12, 13, 20, 21, 22, 23, 30, 31, 32, 33,  //
                  4,  5,  6,  7,  14, 15, 16, 17, 24, 25, 26, 27, 34, 35, 36, 37,  //
                  8,  9,  18, 19, 28, 29, 38, 39,                                  //
                  40, 41, 42, 43, 50, 51, 52, 53,                                  //
                  44, 45, 46, 47, 54, 55, 56, 57,                                  //
                  48, 49, 58, 59}));
}

TEST(WindowOrder, WindowsSpanNeitherFramesNorItems) {
  EXPECT_EQ(order_of({{2, 4, 10}}).tokens, (Ints{0,  1,  2,  3,  5,  6,  7,  8,  4,  9,  //
                                                 10, 11, 12, 13, 15, 16, 17, 18, 14, 19}));
  EXPECT_EQ(order_of({{2, 4, 10}}).cu_seqlens, (Ints{0, 32, 40, 72, 80}));
  const WindowOrder two = order_of({{1, 4, 6}, {1, 8, 12}});
  EXPECT_EQ(two.tokens, (Ints{0,  1,  2,  3,  4,  5,                                           //
                              6,  7,  8,  9,  12, 13, 14, 15, 18, 19, 20, 21, 24, 25, 26, 27,  //
                              10, 11, 16, 17, 22, 23, 28, 29}));
  EXPECT_EQ(two.cu_seqlens, (Ints{0, 24, 88, 120}));
}

TEST(WindowOrder, EveryTokenHasOnePlace) {
  for (const std::int64_t side : {1, 3, 4, 7}) {
    Ints tokens = order_of({{3, 22, 14}, {1, 2, 50}, {1, 34, 46}}, side).tokens;
    const auto count = static_cast<std::int32_t>(tokens.size());
    std::ranges::sort(tokens);
    EXPECT_EQ(tokens, ascending(count)) << side;
  }
}

TEST(WindowInputs, TheBuffersOfACapacityHoldTheWindowsOfAnyFrames) {
  for (const std::int64_t side : {1, 2, 4, 5}) {
    for (std::int64_t height = 1; height <= 30; ++height) {
      for (std::int64_t width = 1; width <= 30; ++width) {
        const WindowOrder order = order_of({{2, 2 * height, 2 * width}}, side);
        const auto decls =
            WindowInputs::declare({.window_size = 28 * side},
                                  {.tokens = std::ssize(order.tokens), .items = 1, .seqs = 2});
        ASSERT_GE(decls[0].shape[0], std::ssize(order.cu_seqlens)) << height << " x " << width;
      }
    }
  }
}

/// An item whose rows are marked with their number.
class WindowInputsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    item_.plan.grid = {1, 10, 12};
    item_.plan.spec.units[0] = {1, 120, 30};
    item_.plan.spec.num_seqs = 1;
    for (std::int32_t row = 0; row < 120; ++row) {
      positions_.insert(positions_.end(), 4, row);
      sources_.insert(sources_.end(), 4, 1000 + row);
    }
  }

  PreparedItem item_;
  Ints positions_;
  Ints sources_;
};

TEST_F(WindowInputsTest, RowsMoveWithTheirTokensAndPlacesLeadBack) {
  test::HostInputs memory(WindowInputs::declare({}, {.tokens = 40, .items = 2, .seqs = 2}));
  const std::vector<ItemPart> parts{ItemPart::whole(item_, 0)};
  memory.fill([&](InputWriter& writer) {
    WindowInputs::fill({}, common::runs_of(kGeometry, parts), {positions_, sources_}, writer);
  });
  const WindowInputs in = WindowInputs::of(memory.tensors());
  EXPECT_EQ(*in.windows.count, 4);
  EXPECT_EQ(test::ints(in.cu_seqlens, 5), (Ints{0, 64, 96, 112, 120}));
  EXPECT_EQ(test::ints(in.places, 30),
            (Ints{0,  1,  2,  3,  16, 17, 4,  5,  6,  7,  18, 19, 8,  9,  10,
                  11, 20, 21, 12, 13, 14, 15, 22, 23, 24, 25, 26, 27, 28, 29}));
  const Ints tokens = order_of({{1, 10, 12}}).tokens;
  for (std::int32_t token = 0; token < 30; ++token) {
    const std::int32_t place = in.places.as<std::int32_t>()[token];
    EXPECT_EQ(tokens[static_cast<std::size_t>(place)], token);
    for (std::int32_t patch = 0; patch < 4; ++patch) {
      const auto at = static_cast<std::size_t>(4 * (4 * place + patch));
      EXPECT_EQ(positions_[at], 4 * token + patch);
      EXPECT_EQ(sources_[at], 1000 + 4 * token + patch);
    }
  }
}

TEST_F(WindowInputsTest, APartOfAVideoHasTheWindowsOfItsFrames) {
  PreparedItem video;
  video.plan.grid = {5, 10, 12};
  video.plan.spec.units[0] = {5, 120, 30};
  video.plan.spec.num_seqs = 5;
  const auto windows = [&](const ItemPart& part) {
    test::HostInputs memory(WindowInputs::declare({}, {.tokens = 90, .items = 1, .seqs = 3}));
    const std::vector<ItemPart> parts{part};
    const Ints::size_type patches = 4 * static_cast<Ints::size_type>(part.patches());
    Ints positions(patches);
    Ints sources(patches);
    memory.fill([&](InputWriter& writer) {
      WindowInputs::fill({}, common::runs_of(kGeometry, parts), {positions, sources}, writer);
    });
    const WindowInputs in = WindowInputs::of(memory.tensors());
    return std::pair(test::ints(in.cu_seqlens, *in.windows.count + 1),
                     test::ints(in.places, part.tokens()));
  };
  PreparedItem image = item_;
  EXPECT_EQ(windows({.item = &video, .path = 0, .first = 3, .count = 1}),
            windows(ItemPart::whole(image, 0)));
  EXPECT_EQ(windows({.item = &video, .path = 0, .first = 1, .count = 3}).first,
            order_of({{3, 10, 12}}).cu_seqlens);
}

}  // namespace
}  // namespace fovea::qwen2_5_vl
