// Items that come as pixel values: the second entrance to the tower. Their rows are the same bits
// as those of the images that the values were made of.
#include <gtest/gtest.h>

#include <utility>

#include "fovea/fovea.h"
#include "support/expect_error.h"
#include "support/golden.h"
#include "support/golden_pixel_values.h"

namespace fovea {
namespace {

using test::GoldenPixelValues;

constexpr std::pair<RowDType, DType> kDTypes[] = {{RowDType::kFloat32, DType::kF32},
                                                  {RowDType::kBFloat16, DType::kBF16},
                                                  {RowDType::kFloat16, DType::kF16}};

MediaItem item_of(const GoldenPixelValues& golden, RowDType dtype = RowDType::kFloat32,
                  DType stored = DType::kF32) {
  MediaItem item = pixel_values(test::stored_as(stored, golden.values), dtype, golden.patches,
                                golden.patch_dim, golden.grid, "values");
  item.modality = golden.modality;
  return item;
}

PixelValues& values_of(MediaItem& item) { return std::get<PixelValues>(item.source); }

class EncodedPixelValues : public ::testing::TestWithParam<int> {
 protected:
  [[nodiscard]] std::vector<Embedding> encode(const std::vector<MediaItem>& items,
                                              const EncodeOptions& how = {}) {
    return engine_.encode(items, how);
  }
  [[nodiscard]] GoldenPixelValues golden(const std::string& name) const {
    return test::golden_pixel_values(folder_, name);
  }
  /// The same before normalisation.
  [[nodiscard]] MediaItem bytes_of(const std::string& name) const {
    const GoldenPixelValues values = golden(name);
    const checkpoint::SafetensorsFile file(folder_ + "/golden.safetensors");
    const bool is_video = values.modality == Modality::kVideo;
    const ConstTensorView stored =
        file.tensor(name + ".in.pixel_values" + (is_video ? "_videos" : "") + "_u8");
    const auto* const first = reinterpret_cast<const std::uint8_t*>(stored.data);
    MediaItem item = pixel_bytes(std::vector(first, first + stored.bytes()), values.patches,
                                 values.patch_dim, values.grid, "values");
    item.modality = values.modality;
    return item;
  }
  /// Those where they are: memory of the device of an engine on the CPU.
  [[nodiscard]] static MediaItem block_of(const MediaItem& bytes) {
    const auto& pixels = std::get<PixelBytes>(bytes.source);
    MediaItem item = pixel_block({.data = pixels.patches.view().data(),
                                  .num_patches = pixels.num_patches,
                                  .patch_dim = pixels.patch_dim,
                                  .grid_thw = pixels.grid_thw,
                                  .owner = std::make_shared<const MediaBytes>(pixels.patches)},
                                 "values");
    item.modality = bytes.modality;
    return item;
  }
  [[nodiscard]] MediaItem image(const std::string& file) const {
    return image_file(folder_ + "/images/" + file);
  }
  void expect_refused(const MediaItem& item, const std::string& part) {
    test::expect_error(ErrorCode::kInvalidArgument, "values: " + part,
                       [&] { (void)encode({item}); });
  }

  const std::string folder_ = test::golden_folder("qwen3_vl", "golden.safetensors");
  Engine engine_ =
      Engine::load(folder_, {.device = "cpu", .data_parallel_size = GetParam(), .num_threads = 2});
};

TEST_P(EncodedPixelValues, GiveTheRowsOfTheImageBitForBit) {
  for (const std::string name :
       {"gradient_64x200", "noise_101x61", "photo_180x180", "shapes_120x90"}) {
    SCOPED_TRACE(name);
    const std::string file = name + (name == "photo_180x180" ? ".jpg" : ".png");
    const Embedding expected = encode({image(file)}).front();
    for (const auto& [dtype, stored] : kDTypes) {
      const Embedding rows = encode({item_of(golden(name), dtype, stored)}).front();
      EXPECT_EQ(rows.data, expected.data) << to_string(stored);
      EXPECT_EQ(rows.grid_thw, expected.grid_thw);
      EXPECT_EQ(rows.resized_width_px, expected.resized_width_px);
      EXPECT_EQ(rows.resized_height_px, expected.resized_height_px);
      EXPECT_EQ(rows.source_width_px, 0) << "nobody knows";
    }
  }
}

TEST_P(EncodedPixelValues, AsBytesGiveTheRowsBitForBit) {
  for (const std::string name : {"gradient_64x200", "noise_101x61", "video"}) {
    SCOPED_TRACE(name);
    const Embedding expected = encode({item_of(golden(name))}).front();
    const Embedding rows = encode({bytes_of(name)}).front();
    EXPECT_EQ(rows.data, expected.data);
    EXPECT_EQ(rows.grid_thw, expected.grid_thw);
    EXPECT_EQ(rows.num_frames, expected.num_frames);
  }
}

TEST_P(EncodedPixelValues, OnTheDeviceGiveTheRowsBitForBit) {
  std::vector<MediaItem> bytes;
  std::vector<MediaItem> blocks;
  for (const std::string name : {"gradient_64x200", "noise_101x61", "video", "photo_180x180"}) {
    bytes.push_back(bytes_of(name));
    blocks.push_back(block_of(bytes.back()));
  }
  blocks.push_back(bytes.front());  // and one that is not
  bytes.push_back(bytes.front());
  for (const PackingPolicy packing : {PackingPolicy::kGreedy, PackingPolicy::kUnits}) {
    EngineOptions options{.device = "cpu", .data_parallel_size = GetParam(), .num_threads = 2};
    options.packing = packing;
    options.encoder_cache_bytes = std::int64_t{1} << 26;
    Engine engine = Engine::load(folder_, options);
    const std::vector<Embedding> expected = engine.encode(bytes);
    for (const bool eager : {false, true}) {
      const std::vector<Embedding> rows = engine.encode(blocks, {.enforce_eager = eager});
      for (std::size_t i = 0; i < rows.size(); ++i) {
        EXPECT_EQ(rows[i].data, expected[i].data) << i << (eager ? " eager" : " graphs");
        EXPECT_EQ(rows[i].grid_thw, expected[i].grid_thw);
        EXPECT_EQ(rows[i].num_frames, expected[i].num_frames);
      }
      EXPECT_TRUE(rows.front().key.empty()) << "they have no content that a cache could know";
      EXPECT_EQ(rows.back().key.empty(), eager);
    }
  }
}

TEST_P(EncodedPixelValues, OnTheDeviceThatContradictEachOtherAreRefused) {
  const MediaItem good = block_of(bytes_of("noise_101x61"));
  const auto expect = [&](const std::string& part, auto&& change) {
    MediaItem item = good;
    change(std::get<PixelBlock>(item.source));
    expect_refused(item, part);
  };
  expect("grid_thw 1x4x8 has 32 patches, got pixel values of 24", [](PixelBlock& block) {
    block.grid_thw = {1, 4, 8};
  });
  expect("a patch of this model has 1536 values, got 768",
         [](PixelBlock& block) { block.patch_dim = 768; });
  expect("expected bytes of patches on the device, got -1 of 1536",
         [](PixelBlock& block) { block.num_patches = -1; });
  expect("an engine on the CPU does not reach memory of cuda:0",
         [](PixelBlock& block) { block.device = 0; });
  expect("a stream of cuda:1 needs an engine on a GPU",
         [](PixelBlock& block) { block.stream = {.device = 1}; });
}

TEST_P(EncodedPixelValues, AsBytesThatContradictEachOtherAreRefused) {
  MediaItem item = bytes_of("noise_101x61");
  auto& pixels = std::get<PixelBytes>(item.source);
  pixels.grid_thw = {1, 4, 8};
  expect_refused(item, "grid_thw 1x4x8 has 32 patches, got pixel values of 24");
  pixels.grid_thw = {1, 4, 6};
  pixels.num_patches = 23;
  expect_refused(item, "23 patches of 1536 x uint8 do not take 36864 bytes");
  item = bytes_of("noise_101x61");
  std::vector<std::uint8_t> bytes(item.content().begin(), item.content().end());
  bytes[1536 + 256] ^= 1;
  std::get<PixelBytes>(item.source).patches = std::move(bytes);
  expect_refused(item, "pixel_values[1, 256] is");
}

TEST_P(EncodedPixelValues, OfAVideoGiveItsRowsBitForBit) {
  const Embedding expected = encode({video_path(folder_ + "/video_frames")}).front();
  for (const auto& [dtype, stored] : kDTypes) {
    const Embedding rows = encode({item_of(golden("video"), dtype, stored)}).front();
    EXPECT_EQ(rows.data, expected.data) << to_string(stored);
    EXPECT_EQ(rows.modality, Modality::kVideo);
    EXPECT_EQ(rows.grid_thw, expected.grid_thw);
    EXPECT_EQ(rows.num_frames, 6);
  }
}

TEST_P(EncodedPixelValues, KeepTheirPlaceAmongImagesVideosAndRows) {
  const MediaItem photo = image("photo_180x180.jpg");
  const MediaItem noise = image("noise_101x61.png");
  const MediaItem clip = video_path(folder_ + "/video_frames");
  const std::vector<Embedding> images = encode({photo, noise, clip});
  const std::vector<MediaItem> mixed{
      item_of(golden("noise_101x61")),
      photo,
      precomputed(images[1]),
      item_of(golden("video")),
      item_of(golden("photo_180x180"), RowDType::kBFloat16, DType::kBF16),
      clip,
      noise};
  const std::size_t expected[] = {1, 0, 1, 2, 0, 2, 1};
  for (const bool eager : {false, true}) {
    const std::vector<Embedding> rows = encode(mixed, {.enforce_eager = eager});
    ASSERT_EQ(rows.size(), mixed.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      EXPECT_EQ(rows[i].data, images[expected[i]].data) << i << (eager ? " eager" : " graphs");
      EXPECT_EQ(rows[i].modality, images[expected[i]].modality);
    }
  }
}

TEST_P(EncodedPixelValues, AreReplayedLikeImages) {
  (void)encode({item_of(golden("noise_101x61")), item_of(golden("gradient_64x200"))});
  const Stats stats = engine_.stats();
  EXPECT_EQ(stats.graph_hits, 2);
  EXPECT_TRUE(stats.miss_reasons.empty());
}

TEST_P(EncodedPixelValues, AValueBetweenTwoBytesIsNamed) {
  GoldenPixelValues values = golden("noise_101x61");
  values.values[5 * 1536 + 9] += 1.0f / 255;  // half a step of 2 / 255
  for (const auto& [dtype, stored] : kDTypes) {
    expect_refused(item_of(values, dtype, stored), "pixel_values[5, 9] is -0.431");
  }
  test::expect_error(ErrorCode::kInvalidArgument, "expected the value of a byte: the nearest is",
                     [&] { (void)encode({item_of(values)}); });
}

TEST_P(EncodedPixelValues, SizesThatContradictEachOtherAreRefused) {
  const GoldenPixelValues good = golden("noise_101x61");  // 24 patches, grid 1x4x6
  MediaItem item = item_of(good);
  PixelValues& values = values_of(item);
  values.grid_thw = {1, 4, 8};
  expect_refused(item, "grid_thw 1x4x8 has 32 patches, got pixel values of 24");
  values.grid_thw = {1, 3, 8};
  expect_refused(item, "grid_thw must be positive with sides that are multiples of 2, got 1x3x8");
  values.grid_thw = {2, 2, 6};
  expect_refused(item, "grid_thw of an image begins with 1, got 2x2x6");
  values.grid_thw = {1, std::int64_t{1} << 40, std::int64_t{1} << 40};
  expect_refused(item, "grid_thw 1x1099511627776x1099511627776 has more pixels");
  values.grid_thw = good.grid;
  values.patches.num_rows = 48;
  values.patches.row_width = 768;
  expect_refused(item, "grid_thw 1x4x6 has 24 patches, got pixel values of 48");
  values.grid_thw = {1, 4, 12};
  expect_refused(item, "pixel_values must be [48, 1536] for this grid, got [48, 768]");
}

TEST_P(EncodedPixelValues, BytesOfAnotherDtypeOrNumberAreRefused) {
  MediaItem item = item_of(golden("noise_101x61"));
  values_of(item).patches.dtype = RowDType::kFloat16;
  expect_refused(item, "24 patches of 1536 x float16 do not take 147456 bytes");
  item = item_of(golden("noise_101x61"));
  RowMatrix& patches = values_of(item).patches;
  patches.bytes = {patches.bytes.view().first(147455), std::make_shared<MediaBytes>(patches.bytes)};
  expect_refused(item, "24 patches of 1536 x float32 do not take 147455 bytes");
  patches.num_rows = -24;
  expect_refused(item, "-24 patches of 1536");
}

TEST_P(EncodedPixelValues, ABadOneIsSkippedOnRequest) {
  GoldenPixelValues bad = golden("noise_101x61");
  bad.values[0] = 9;
  const std::vector<Embedding> rows =
      encode({item_of(bad), item_of(golden("noise_101x61"))}, {.on_error = OnError::kSkip});
  EXPECT_TRUE(rows[0].error);
  EXPECT_FALSE(rows[1].error);
  EXPECT_EQ(rows[1].rows, 6);
}

INSTANTIATE_TEST_SUITE_P(Replicas, EncodedPixelValues, ::testing::Values(1, 3));

TEST(PixelValuesOfOtherFamilies, LineByLineAreNotTakenOnTheDevice) {
  Engine engine = Engine::load(test::golden_folder("kimi_vl", "golden.safetensors"),
                               {.device = "cpu", .num_threads = 2});
  const std::vector<std::uint8_t> patches(4 * 3 * 14 * 14);
  const std::vector<MediaItem> items{pixel_block(
      {.data = patches.data(), .num_patches = 4, .patch_dim = 588, .grid_thw = {1, 2, 2}},
      "values")};
  test::expect_error(ErrorCode::kUnsupported, "values: the processor of this model returns patches",
                     [&] { (void)engine.encode(items); });
}

TEST(PixelValuesOfOtherFamilies, AreUnsupported) {
  Engine engine = Engine::load(test::golden_folder("deepseek_ocr", "golden.safetensors"),
                               {.device = "cpu", .num_threads = 2});
  const std::vector<MediaItem> items{
      pixel_values(std::vector<std::uint8_t>(64), RowDType::kFloat32, 4, 4, {1, 2, 2}, "values")};
  test::expect_error(ErrorCode::kUnsupported, "values: the model takes images, no pixel values",
                     [&] { (void)engine.encode(items); });
}

}  // namespace
}  // namespace fovea
