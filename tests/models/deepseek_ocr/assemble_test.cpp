// From the rows of both paths to those of items, whole and part by part.
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

  [[nodiscard]] PreparedItem image(std::int64_t width_px, std::int64_t height_px) const {
    return {.plan = processor_.plan_image(width_px, height_px), .pixels = {}};
  }
  /// Puts the rows of a part, the first of which has the number `first`, among those of its item.
  void put(const ItemPart& part, float first, Rows& out) {
    Rows rows = numbered(part.tokens(), first);
    Arena arena(nullptr, 0);
    ExecContext ctx{*stream_, *kernels_, arena, *stream_};
    assemble_part(ctx, weights_, processor_.processing().views, part, view(rows), view(out));
    stream_->synchronize();
  }
  static Rows unwritten(const PreparedItem& item) {
    return Rows(static_cast<std::size_t>(item.plan.spec.out_rows * kWidth), -9.0f);
  }
  static Rows first_column(const Rows& rows) {
    Rows column;
    for (std::size_t i = 0; i < rows.size(); i += kWidth) column.push_back(rows[i]);
    return column;
  }

  /// The first column of the rows of an image, each path at once.
  Rows assemble(std::int64_t width_px, std::int64_t height_px) {
    const PreparedItem item = image(width_px, height_px);
    Rows out = unwritten(item);
    put(ItemPart::whole(item, kGlobal), 0, out);
    const ItemPart tiles = ItemPart::whole(item, kLocal);
    if (tiles.count > 0) put(tiles, kFirstTileRow, out);
    return first_column(out);
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
  const Rows rows = assemble(641, 480);  // 3 x 2 tiles of 10 x 10 tokens
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
  const Rows rows = assemble(641, 480);
  EXPECT_EQ(rows[620], 0.0f);
  EXPECT_EQ(rows[891], 271.0f);
  EXPECT_EQ(rows[892], kSeparator);
}

TEST_F(Assemble, AnImageWithoutTilesHasItsGlobalViewAlone) {
  const Rows rows = assemble(320, 240);
  ASSERT_EQ(rows.size(), 273u);
  EXPECT_EQ(rows[0], 0.0f);
  EXPECT_EQ(rows[271], 271.0f);
  EXPECT_EQ(rows[272], kSeparator);
}

TEST_F(Assemble, PartsMayComeInAnyOrder) {
  const PreparedItem item = image(480, 641);  // 2 x 3 tiles
  Rows out = unwritten(item);
  const auto put_tiles = [&](std::int64_t first, std::int64_t count) {
    put({.item = &item, .path = kLocal, .first = first, .count = count},
        kFirstTileRow + 100 * static_cast<float>(first), out);
  };
  put_tiles(3, 3);
  put_tiles(0, 1);
  put(ItemPart::whole(item, kGlobal), 0, out);
  EXPECT_EQ(first_column(out)[20], -9.0f) << "a newline comes with the last tile of its row";
  EXPECT_EQ(first_column(out)[230], kNewline) << "under tile 3";
  put_tiles(1, 2);
  EXPECT_EQ(first_column(out), assemble(480, 641));
}

}  // namespace
}  // namespace fovea::deepseek_ocr
