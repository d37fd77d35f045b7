// Views of Phi-4-multimodal: sizes worked out with the reference, and the values of its images.
#include "models/phi4_multimodal/processor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "checkpoint/safetensors.h"
#include "core/file.h"
#include "media/decode_image.h"
#include "models/config_files.h"
#include "support/expect_error.h"
#include "support/golden.h"

namespace fovea::phi4_multimodal {
namespace {

Processing processing_of(const std::string& file) {
  return read_processing(test::config_files({.preprocessor = file}), Config{}, {});
}

TEST(Phi4MultimodalProcessor, PlansImagesAsTheReference) {
  struct Case {
    std::int64_t width, height;
    std::int64_t canvas_height, canvas_width;
    std::int64_t rows;
  };
  const Processor processor(processing_of("{}"));
  for (const Case& c : {Case{1240, 1754, 1792, 1344, 3281}, Case{1920, 1080, 1344, 2240, 3918},
                        Case{2000, 90, 448, 2240, 597}, Case{2600, 1900, 2240, 2688, 7160},
                        Case{333, 77, 448, 448, 341}, Case{40, 500, 896, 448, 401},
                        Case{640, 480, 896, 896, 1065}}) {
    SCOPED_TRACE(std::to_string(c.width) + "x" + std::to_string(c.height));
    const ItemPlan plan = processor.plan_image(c.width, c.height);
    EXPECT_EQ(plan.grid[1] * 448, c.canvas_height);
    EXPECT_EQ(plan.grid[2] * 448, c.canvas_width);
    EXPECT_EQ(plan.spec.out_rows, c.rows);
  }
}

TEST(Phi4MultimodalProcessor, LargeImagesHaveAsManyViewsAsTheFileAllows) {
  const Processor processor(processing_of(R"({"dynamic_hd": 4})"));
  EXPECT_EQ(processor.plan_image(4000, 4000).grid, (std::array<std::int64_t, 3>{1, 2, 2}));
}

TEST(Phi4MultimodalProcessor, RefusesWhatItCannotHonour) {
  const auto expect_refused = [](const std::string& message, const std::string& file) {
    test::expect_error(ErrorCode::kUnsupported, message, [&] { (void)processing_of(file); });
  };
  expect_refused("size.height: 224 contradicts", R"({"size": {"height": 224, "width": 224}})");
  expect_refused("patch_size: only 14", R"({"patch_size": 16})");
  expect_refused("resample: only 3", R"({"resample": 2})");
  expect_refused("do_rescale: false", R"({"do_rescale": false})");
  const Processor processor(processing_of("{}"));
  test::expect_error(ErrorCode::kInvalidArgument, "is too thin",
                     [&] { (void)processor.plan_image(20000, 2); });
  test::expect_error(ErrorCode::kInvalidArgument, "has no area",
                     [&] { (void)processor.plan_image(0, 2); });
  test::expect_error(ErrorCode::kUnsupported, "no videos",
                     [&] { (void)processor.plan_video(2, 64, 64); });
}

TEST(Phi4MultimodalProcessor, SaysWhatItAssumes) {
  const Processor processor(processing_of(""));
  EXPECT_EQ(processor.assumptions(), "missing=model/preprocessor_config.json dynamic_hd=36");
}

TEST(Phi4MultimodalProcessor, RowsOfGoldenImagesAreAsManyAsThoseOfTheReference) {
  const auto folders = test::golden_folders("phi4_multimodal", "golden.safetensors");
  if (folders.empty()) GTEST_SKIP() << "no folder phi4_multimodal; set FOVEA_GOLDEN_DIR";
  for (const std::string& folder : folders) {
    const checkpoint::HfConfig files = checkpoint::read_hf_config(folder);
    const Processor processor(read_processing(files, parse_config(files), {}));
    const checkpoint::SafetensorsFile file(folder + "/golden.safetensors");
    for (const auto& entry : std::filesystem::directory_iterator(folder + "/images")) {
      const std::string path = entry.path().string();
      const media::Image image = media::decode_image(read_file(path, 1 << 24), path, {});
      const ItemPlan plan = processor.plan_image(image.width_px, image.height_px);
      const std::string name = entry.path().stem().string() + ".out.pooler_output";
      EXPECT_EQ(plan.spec.out_rows, file.tensor(name).shape[0]) << path;
    }
  }
}

/// The whole levels of the first plane that stand for bytes: 2 b0 - 128, and 1 more if b1 is 128.
TEST(Phi4MultimodalProcessor, BytesOfTheCanvasAreThoseOfTheReference) {
  const auto folders = test::golden_folders("phi4_multimodal", "golden.safetensors");
  if (folders.empty()) GTEST_SKIP() << "no folder phi4_multimodal; set FOVEA_GOLDEN_DIR";
  for (const std::string& folder : folders) {
    const checkpoint::HfConfig files = checkpoint::read_hf_config(folder);
    const Config config = parse_config(files);
    const Processor processor(read_processing(files, config, {}));
    const checkpoint::SafetensorsFile file(folder + "/golden.safetensors");
    int compared = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder + "/images")) {
      const std::string path = entry.path().string();
      const std::string name = entry.path().stem().string() + ".in.image_pixel_values_u8";
      if (file.find(name) == nullptr) continue;  // the global view is no bytes, or too many
      const media::Image image = media::decode_image(read_file(path, 1 << 24), path, {});
      const ItemPlan plan = processor.plan_image(image.width_px, image.height_px);
      std::vector<std::uint8_t> pixels(plan.pixel_bytes);
      processor.fill_frame(plan, 0, {image.rgb.data(), image.width_px, image.height_px}, pixels);
      const std::int64_t side = config.tower.view.side_px;
      const ConstTensorView want = file.tensor(name);  // [1, views, 3, side, side]
      const auto plane = static_cast<std::size_t>(side * side * 3);
      for (std::int64_t i = 0; i < side * side * 3; ++i) {
        const std::int64_t from = i % 3 * side * side + i / 3;
        const auto at = static_cast<std::size_t>(i);
        const int level = 2 * pixels[at] - 128 + pixels[plane + at] / 128;
        ASSERT_EQ(level, want.as<std::uint8_t>()[from]) << path << " " << i;
      }
      ++compared;
    }
    EXPECT_GE(compared, 1);
  }
}

}  // namespace
}  // namespace fovea::phi4_multimodal
