// The default assembly of a single path: parts go to their place in items, neighbours travel
// together.
#include <gtest/gtest.h>

#include <numeric>

#include "fovea/tower/ops/context.h"
#include "graph/harness.h"
#include "support/expect_error.h"

namespace fovea {
namespace {

using namespace test;  // NOLINT: the harness is written for these tests

/// Copies, and counts copies.
class CountingStream final : public Stream {
 public:
  void copy(std::byte* dst, const std::byte* src, std::size_t bytes) override {
    std::memcpy(dst, src, bytes);
    ++copies;
  }
  void fill_zero(std::byte*, std::size_t) override {}
  void copy_rows(const RowCopy&) override {}
  std::unique_ptr<RecordedGraph> capture(const std::function<void()>&) override { return nullptr; }
  void replay(const RecordedGraph&) override {}
  void wait_for(Stream&) override {}
  void meet(const Team&) override {}
  [[nodiscard]] bool is_idle() const override { return true; }
  void synchronize() override {}
  int copies = 0;
};

class AssembleTest : public ::testing::Test {
 protected:
  AssembleTest() { std::iota(path_rows.begin(), path_rows.end(), 0.0f); }

  /// Assembles parts into items whose rows start at the given elements, part by part.
  void assemble(const std::vector<ItemPart>& parts, const std::vector<std::size_t>& starts) {
    Arena arena(nullptr, 0);
    ExecContext ctx{.stream = stream, .kernels = *kernels, .arena = arena, .side = stream};
    std::vector<TensorView> out;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      out.push_back({reinterpret_cast<std::byte*>(result.data() + starts[i]),
                     DType::kF32,
                     {parts[i].plan().spec.out_rows, 2}});
    }
    model.assemble(ctx, 0, {reinterpret_cast<std::byte*>(path_rows.data()), DType::kF32, {6, 2}},
                   parts, out);
  }

  MockModel model{MockOptions{.hidden = 2}};
  Batch images = mock_batch(model, {{1, 2, 2}, {1, 2, 4}, {1, 2, 6}});  // 1, 2 and 3 tokens
  Batch video = mock_batch(model, {{3, 2, 4}});                         // 3 units of 2 tokens
  std::unique_ptr<Kernels> kernels = make_cpu_kernels(CpuIsa::kPortable, 1);
  CountingStream stream;
  std::vector<float> path_rows = std::vector<float>(12);
  std::vector<float> result = std::vector<float>(20, -1.0f);
};

TEST_F(AssembleTest, NeighboursAreOneCopy) {
  assemble(images.parts(), {0, 2, 6});
  EXPECT_EQ(stream.copies, 1);
  EXPECT_TRUE(std::equal(path_rows.begin(), path_rows.end(), result.begin()));
}

TEST_F(AssembleTest, OthersGoWhereTheyBelong) {
  assemble(images.parts(), {10, 12, 0});  // the first two are neighbours
  EXPECT_EQ(stream.copies, 2);
  EXPECT_EQ(Rows(result.begin() + 10, result.begin() + 16), (Rows{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(Rows(result.begin(), result.begin() + 6), (Rows{6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(result[6], -1.0f);
}

TEST_F(AssembleTest, UnitsGoToTheirPlaceInTheirItem) {
  const PreparedItem& item = video.items()[0];
  assemble({{&item, 0, 2, 1}, {&item, 0, 0, 2}}, {2, 2});
  EXPECT_EQ(stream.copies, 2);
  EXPECT_EQ(Rows(result.begin() + 2, result.begin() + 14),
            (Rows{4, 5, 6, 7, 8, 9, 10, 11, 0, 1, 2, 3}));
  EXPECT_EQ(result[1], -1.0f);
  EXPECT_EQ(result[14], -1.0f);
}

TEST_F(AssembleTest, UnitsInTheirOrderAreOneCopy) {
  const PreparedItem& item = video.items()[0];
  assemble({{&item, 0, 0, 1}, {&item, 0, 1, 2}}, {0, 0});
  EXPECT_EQ(stream.copies, 1);
  EXPECT_TRUE(std::equal(path_rows.begin(), path_rows.end(), result.begin()));
}

TEST_F(AssembleTest, TwoPathsNeedAModelThatAssembles) {
  const DualModel dual;
  Arena arena(nullptr, 0);
  ExecContext ctx{.stream = stream, .kernels = *kernels, .arena = arena, .side = stream};
  expect_error(ErrorCode::kInternal, "a model with 2 paths must assemble its rows itself",
               [&] { dual.EncoderGraphModel::assemble(ctx, 0, {}, {}, {}); });
}

TEST_F(AssembleTest, RefusesADestinationOfAnotherSize) {
  const ItemPart part = video.parts().front();
  Arena arena(nullptr, 0);
  ExecContext ctx{.stream = stream, .kernels = *kernels, .arena = arena, .side = stream};
  const TensorView short_rows{reinterpret_cast<std::byte*>(result.data()), DType::kF32, {5, 2}};
  expect_error(ErrorCode::kInternal, "item needs 6 rows, its destination has 5", [&] {
    model.assemble(ctx, 0, {}, {&part, 1}, {&short_rows, 1});
  });
}

}  // namespace
}  // namespace fovea
