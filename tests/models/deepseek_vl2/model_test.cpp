// DeepSeek-VL2: the order of rows, and the projector as a convolution.
#include "models/deepseek_vl2/model.h"

#include <gtest/gtest.h>

#include "device/cpu/cpu_device.h"
#include "models/deepseek_vl2/processor.h"
#include "ops/cpu/cpu_kernels.h"

namespace fovea::deepseek_vl2 {
namespace {

constexpr std::int64_t kWidth = 4;
constexpr float kNewline = -1;
constexpr float kSeparator = -2;

using Rows = std::vector<float>;

class DeepseekVl2Assemble : public ::testing::Test {
 protected:
  DeepseekVl2Assemble() {
    config_.tower.view = {.side_px = 42, .patch_px = 14};  // 3 x 3 patches, 2 x 2 tokens
    config_.candidate_resolutions = {{84, 84}};
    weights_.image_newline = loader_.constant(Rows(kWidth, kNewline), {1, kWidth});
    weights_.view_seperator = loader_.constant(Rows(kWidth, kSeparator), {1, kWidth});
  }

  /// The first column of the rows of an image of 2 x 2 tiles, whose views come in two parts. Rows
  /// of views hold 10 times the number of the view plus the number of the token.
  Rows assemble(std::int64_t first_part) {
    const PreparedItem item{.plan = Processor(config_, Processing{}).plan_image(80, 80),
                            .pixels = {}};
    Rows out(static_cast<std::size_t>(item.plan.spec.out_rows * kWidth), -9.0f);
    put({.item = &item, .path = 0, .first = first_part, .count = 5 - first_part}, out);
    put({.item = &item, .path = 0, .first = 0, .count = first_part}, out);
    Rows column;
    for (std::size_t i = 0; i < out.size(); i += kWidth) column.push_back(out[i]);
    return column;
  }
  void put(const ItemPart& part, Rows& out) {
    Rows rows;
    for (std::int64_t i = 0; i < 4 * part.count; ++i) {
      rows.insert(rows.end(), kWidth, static_cast<float>(10 * (part.first + i / 4) + i % 4));
    }
    const auto view = [](Rows& values) {
      const auto count = static_cast<std::int64_t>(values.size()) / kWidth;
      return TensorView{reinterpret_cast<std::byte*>(values.data()), DType::kF32, {count, kWidth}};
    };
    Arena arena(nullptr, 0);
    ExecContext ctx{*stream_, *kernels_, arena, *stream_};
    assemble_part(ctx, config_, weights_, part, view(rows), view(out));
    stream_->synchronize();
  }

  std::unique_ptr<Kernels> kernels_ = make_cpu_kernels(CpuIsa::kPortable, 1);
  std::unique_ptr<Device> device_ = make_cpu_device(1, *kernels_);
  std::unique_ptr<Stream> stream_ = device_->create_stream();
  checkpoint::WeightSource source_ = checkpoint::WeightSource::dummy(0);
  common::WeightLoader loader_{source_, "", *device_, *stream_};
  Config config_;
  Weights weights_;
};

TEST_F(DeepseekVl2Assemble, TheGlobalViewComesFirstThenTheTilesAsOneGrid) {
  const float n = kNewline;
  const Rows global{0, 1, n, 2, 3, n};
  const Rows tiles{10, 11, 20, 21, n, 12, 13, 22, 23, n, 30, 31, 40, 41, n, 32, 33, 42, 43, n};
  Rows want = global;
  want.push_back(kSeparator);
  want.insert(want.end(), tiles.begin(), tiles.end());
  for (const std::int64_t first_part : {1, 2, 3, 4}) EXPECT_EQ(assemble(first_part), want);
}

TEST_F(DeepseekVl2Assemble, OrTheTilesDo) {
  config_.global_first = false;
  const Rows rows = assemble(3);
  EXPECT_EQ(rows.front(), 10);
  EXPECT_EQ(rows[20], kSeparator);
  EXPECT_EQ(rows[21], 0);
  EXPECT_EQ(rows.back(), kNewline);
}

TEST(DeepseekVl2Weights, AreTheTensorsOfThePublishedTower) {
  const auto source = checkpoint::WeightSource::dummy(0);
  common::WeightLoader loader(source, "");
  const Weights w = load_weights(loader, Config{}, {});
  EXPECT_EQ(w.vision.position_embedding.shape, (Shape{729, 1152}));
  EXPECT_EQ(w.projector.fc1.in_features, 9 * 1152);
  EXPECT_EQ(loader.report().size(), 3u + 27 * 12 + 2 + 4 + 2);
  const std::int64_t block = 4 * 1152 + 4 * (1152 * 1152 + 1152) + 2 * 1152 * 4304 + 4304 + 1152;
  const std::int64_t projector = 4608 * 2048 + 2048 + 2048 * 2048 + 2048 + 2 * 2048;
  EXPECT_EQ(loader.parameters(), 589 * 1152 + 729 * 1152 + 27 * block + 2 * 1152 + projector);
}

}  // namespace
}  // namespace fovea::deepseek_vl2
