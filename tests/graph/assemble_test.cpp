// The default assembly of a single path: rows are cut by item, neighbours travel together.
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
  [[nodiscard]] bool is_idle() const override { return true; }
  void synchronize() override {}
  int copies = 0;
};

class AssembleTest : public ::testing::Test {
 protected:
  AssembleTest() { std::iota(path_rows.begin(), path_rows.end(), 0.0f); }

  /// Assembles items of 1, 0, 2 and 3 tokens into rows starting at the given elements.
  void assemble(std::array<std::size_t, 4> starts) {
    Arena arena(nullptr, 0);
    ExecContext ctx{.stream = stream, .kernels = *kernels, .arena = arena, .side = stream};
    const Batch batch = mock_batch(model, {{1, 2, 2}, {1, 0, 0}, {1, 2, 4}, {1, 2, 6}});
    std::vector<TensorView> out;
    for (std::size_t i = 0; i < 4; ++i) {
      out.push_back({reinterpret_cast<std::byte*>(result.data() + starts[i]),
                     DType::kF32,
                     {batch.items()[i].plan.spec.out_rows, 2}});
    }
    const PathOutput output{
        .rows = {reinterpret_cast<std::byte*>(path_rows.data()), DType::kF32, {6, 2}}};
    model.assemble(ctx, {&output, 1}, batch.pointers(), out);
  }

  MockModel model{MockOptions{.hidden = 2}};
  std::unique_ptr<Kernels> kernels = make_cpu_kernels(CpuIsa::kPortable, 1);
  CountingStream stream;
  std::vector<float> path_rows = std::vector<float>(12);
  std::vector<float> result = std::vector<float>(20, -1.0f);
};

TEST_F(AssembleTest, NeighboursAreOneCopy) {
  assemble({0, 2, 2, 6});
  EXPECT_EQ(stream.copies, 1);
  EXPECT_TRUE(std::equal(path_rows.begin(), path_rows.end(), result.begin()));
}

TEST_F(AssembleTest, OthersGoWhereTheyBelong) {
  assemble({10, 0, 12, 0});  // the first and the third are neighbours
  EXPECT_EQ(stream.copies, 2);
  EXPECT_EQ(Rows(result.begin() + 10, result.begin() + 16), (Rows{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(Rows(result.begin(), result.begin() + 6), (Rows{6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(result[6], -1.0f);
}

TEST_F(AssembleTest, TwoPathsNeedAModelThatAssembles) {
  const std::array<PathOutput, 2> two{};
  Arena arena(nullptr, 0);
  ExecContext ctx{.stream = stream, .kernels = *kernels, .arena = arena, .side = stream};
  expect_error(ErrorCode::kInternal, "a model with 2 paths must assemble its rows itself",
               [&] { model.assemble(ctx, two, {}, {}); });
}

}  // namespace
}  // namespace fovea
