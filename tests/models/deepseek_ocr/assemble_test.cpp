// From the outputs of both paths to the rows of an item.
#include "models/deepseek_ocr/model.h"

#include <gtest/gtest.h>

#include "device/cpu/cpu_device.h"
#include "models/deepseek_ocr/processor.h"
#include "ops/cpu/cpu_kernels.h"

namespace fovea::deepseek_ocr {
namespace {

constexpr std::int64_t kWidth = 4;
constexpr float kNewline = -1;
constexpr float kSeparator = -2;

/// Rows of the paths hold their numbers, those of the local path from kFirstTileRow on.
constexpr float kFirstTileRow = 10000;

using Rows = std::vector<float>;

class Assemble : public ::testing::Test {
 protected:
  Assemble() {
    weights_.image_newline = loader_.constant(Rows(kWidth, kNewline), {1, kWidth});
    weights_.view_seperator = loader_.constant(Rows(kWidth, kSeparator), {1, kWidth});
  }

  static Rows numbered(std::int64_t rows, float first) {
    Rows values;
    for (std::int64_t row = 0; row < rows; ++row) {
      values.insert(values.end(), kWidth, first + static_cast<float>(row));
    }
    return values;
  }
  static TensorView view(Rows& rows) {
    const auto count = static_cast<std::int64_t>(rows.size()) / kWidth;
    return {reinterpret_cast<std::byte*>(rows.data()), DType::kF32, {count, kWidth}};
  }

  /// The first column of the assembled rows of images of these sizes, one sub-batch.
  std::vector<Rows> assemble(const std::vector<std::pair<std::int64_t, std::int64_t>>& sizes) {
    std::vector<ItemPlan> plans;
    std::int64_t local_tokens = 0;
    for (const auto& [width, height] : sizes) {
      plans.push_back(processor_.plan_image(width, height));
      local_tokens += plans.back().spec.path_tokens[kLocal];
    }
    Rows global = numbered(272 * static_cast<std::int64_t>(sizes.size()), 0);
    Rows local = numbered(local_tokens, kFirstTileRow);
    PathRows paths{.global = view(global), .local = view(local)};
    std::vector<Rows> columns;
    for (const ItemPlan& plan : plans) {
      Rows out(static_cast<std::size_t>(plan.spec.out_rows * kWidth), -9.0f);
      Arena arena(nullptr, 0);
      ExecContext ctx{*stream_, *kernels_, arena, *stream_};
      assemble_item(ctx, weights_, processor_.processing().views, plan, paths, view(out));
      stream_->synchronize();
      Rows& column = columns.emplace_back();
      for (std::size_t i = 0; i < out.size(); i += kWidth) column.push_back(out[i]);
    }
    EXPECT_EQ(paths.global.shape[0] + paths.local.shape[0], 0) << "all rows have been taken";
    return columns;
  }

  const Processor processor_{Processing{}};
  std::unique_ptr<Kernels> kernels_ = make_cpu_kernels(CpuIsa::kPortable, 1);
  std::unique_ptr<Device> device_ = make_cpu_device(1, *kernels_);
  std::unique_ptr<Stream> stream_ = device_->create_stream();
  checkpoint::WeightSource source_ = checkpoint::WeightSource::dummy(0);
  common::WeightLoader loader_{source_, "", *device_, *stream_};
  Weights weights_;
};

TEST_F(Assemble, TilesAreLaidOutAsTheTokenGridOfTheImage) {
  const Rows rows = assemble({{641, 480}}).front();  // 3 x 2 tiles of 10 x 10 tokens
  ASSERT_EQ(rows.size(), 893u);
  const auto tile_token = [](int tile, int token) {
    return kFirstTileRow + static_cast<float>(tile * 100 + token);
  };
  EXPECT_EQ(rows[0], tile_token(0, 0));
  EXPECT_EQ(rows[9], tile_token(0, 9));
  EXPECT_EQ(rows[10], tile_token(1, 0));
  EXPECT_EQ(rows[29], tile_token(2, 9));
  EXPECT_EQ(rows[30], kNewline);
  EXPECT_EQ(rows[31], tile_token(0, 10));
  EXPECT_EQ(rows[310], tile_token(3, 0));
  EXPECT_EQ(rows[618], tile_token(5, 99));
  EXPECT_EQ(rows[619], kNewline);
}

TEST_F(Assemble, TheGlobalViewAndASeparatorFollow) {
  const Rows rows = assemble({{641, 480}}).front();
  EXPECT_EQ(rows[620], 0.0f);
  EXPECT_EQ(rows[891], 271.0f);
  EXPECT_EQ(rows[892], kSeparator);
}

TEST_F(Assemble, AnImageWithoutTilesHasItsGlobalViewAlone) {
  const Rows rows = assemble({{320, 240}}).front();
  ASSERT_EQ(rows.size(), 273u);
  EXPECT_EQ(rows[0], 0.0f);
  EXPECT_EQ(rows[271], 271.0f);
  EXPECT_EQ(rows[272], kSeparator);
}

TEST_F(Assemble, EveryItemTakesTheRowsAfterThoseOfTheOneBefore) {
  // 2 x 3 tiles, none, 3 x 2 tiles: the last takes its tiles from the middle of the path's output.
  const std::vector<Rows> items = assemble({{480, 641}, {320, 240}, {641, 480}});
  EXPECT_EQ(items[0][20], kNewline);
  EXPECT_EQ(items[0][21], kFirstTileRow + 10);
  EXPECT_EQ(items[0][210], kFirstTileRow + 200);
  EXPECT_EQ(items[0][630], 0.0f);
  EXPECT_EQ(items[1][0], 272.0f);
  EXPECT_EQ(items[2][0], kFirstTileRow + 600);
  EXPECT_EQ(items[2][620], 2 * 272.0f);
}

}  // namespace
}  // namespace fovea::deepseek_ocr
