// What of an item is in its key, and which model.
#include "engine/cached/item_key.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "checkpoint/hf_config.h"
#include "engine/backend.h"
#include "engine/cached/model_fingerprint.h"
#include "engine/cached/noise.h"
#include "fovea/engine.h"
#include "support/options.h"
#include "support/temporary_directory.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

class ItemKeyTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::string key(const MediaItem& item) const {
    const std::optional<ItemKey> key = item_key({model_, options_}, item);
    return key ? key->text : "";
  }
  [[nodiscard]] std::string write(const std::string& name, const std::string& text) const {
    const fs::path path = folder_ / name;
    std::ofstream(path) << text;
    return path;
  }

  test::TemporaryDirectory folder_;
  std::string model_ = "m0";
  EngineOptions options_;
};

TEST_F(ItemKeyTest, OfPixelBytesDependsOnBytesShapeAndGrid) {
  const std::vector<std::uint8_t> bytes(48, 7);
  const std::string a = key(pixel_bytes(bytes, 4, 12, {1, 2, 2}, "a"));
  EXPECT_EQ(a, key(pixel_bytes(bytes, 4, 12, {1, 2, 2}, "b")));
  EXPECT_NE(a, key(pixel_bytes(bytes, 4, 12, {1, 1, 4}, "a")));
  EXPECT_NE(a, key(pixel_bytes(bytes, 2, 24, {1, 2, 2}, "a")));
  EXPECT_NE(a, key(pixel_bytes(std::vector<std::uint8_t>(48, 8), 4, 12, {1, 2, 2}, "a")));
  EXPECT_NE(a, key(pixel_values(bytes, RowDType::kFloat32, 4, 3, {1, 2, 2}, "a")));
}

TEST_F(ItemKeyTest, DoesNotDependOnWhereAFileLies) {
  const std::string a = key(image_file(write("a.png", "content")));
  EXPECT_EQ(a, key(image_file(write("b.png", "content"))));
  EXPECT_EQ(a, key(image_bytes({'c', 'o', 'n', 't', 'e', 'n', 't'}, "c")));
  EXPECT_NE(a, key(image_file(write("d.png", "contenT"))));
}

TEST_F(ItemKeyTest, DependsOnTheModel) {
  const MediaItem image = image_bytes({1, 2, 3}, "image");
  const std::string before = key(image);
  model_ = "m1";
  EXPECT_NE(key(image), before);
}

TEST_F(ItemKeyTest, DependsOnTheRateOfVideosAlone) {
  const MediaItem video = video_bytes({1, 2, 3}, "video");
  const std::string video_key = key(video);
  EXPECT_NE(video_key, key(video_bytes({1, 2, 3}, "video", 4)));
  options_.video_pruning_rate = 0.5;  // of whole rows
  EXPECT_EQ(video_key, key(video));
}

TEST_F(ItemKeyTest, TellsFramesFromOneAnother) {
  const auto video = [&](const std::vector<std::string>& frames) {
    FrameFiles files;
    for (const std::string& frame : frames) files.paths.push_back(write(frame, frame));
    return MediaItem{.modality = Modality::kVideo, .name = "frames", .source = files};
  };
  EXPECT_EQ(key(video({"ab", "c"})), key(video({"ab", "c"})));
  EXPECT_NE(key(video({"ab", "c"})), key(video({"a", "bc"})));
  EXPECT_NE(key(video({"ab", "c"})), key(video({"c", "ab"})));
  EXPECT_EQ(key(video({"ab", "c"})), key(video_frames({{'a', 'b'}, {'c'}}, "in memory")));
}

TEST_F(ItemKeyTest, KnowsWhetherAFileHasChanged) {
  const std::string path = write("a.png", "content");
  const std::optional<ItemKey> before = item_key({model_, options_}, image_file(path));
  ASSERT_TRUE(before);
  EXPECT_TRUE(before->is_current());
  (void)write("a.png", "more content");
  EXPECT_FALSE(before->is_current());
  fs::remove(path);
  EXPECT_FALSE(before->is_current());
}

TEST_F(ItemKeyTest, IsAbsentForWhatCannotBeEncoded) {
  EXPECT_EQ(key(image_file("/nowhere.png")), "");
  EXPECT_EQ(key(image_bytes({}, "empty")), "");
  EXPECT_EQ(key(image_rgb({1, 2, 3}, 2, 2, "too short")), "");
  EXPECT_EQ(key(precomputed_rows({}, RowDType::kFloat32, 0, 4, "rows")), "");
  options_.media.limits.max_image_bytes = 3;
  EXPECT_EQ(key(image_file(write("a.png", "content"))), "");
}

/// The fingerprint of a copy of a model, whose file `changed` has its last byte altered.
std::string fingerprint(const std::string& changed, const EngineOptions& options = {}) {
  const test::TemporaryDirectory folder;
  fs::copy(test::golden_folder("qwen3_vl", "golden.safetensors"), folder.path());
  if (!changed.empty()) {
    std::fstream file(folder / changed, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(-1, std::ios::end);
    const int last = file.get();
    file.seekp(-1, std::ios::end);
    file.put(changed.ends_with("json") ? ' ' : static_cast<char>(last ^ 1));
  }
  checkpoint::HfConfig files = checkpoint::read_hf_config(folder.path());
  if (!options.tower.empty()) {  // a library counts by its bytes
    files.tower = folder / options.tower;
    std::ofstream(files.tower) << "a tower";
  }
  const checkpoint::WeightSource weights = options.dummy_weights
                                               ? checkpoint::WeightSource::dummy(options.seed)
                                               : checkpoint::WeightSource::open(folder.path());
  ThreadPool pool(2);
  return model_fingerprint(files, weights, inspect(folder.path()).tensors,
                           compute_dtype(options, DType::kF32), options, pool);
}

TEST(ModelFingerprint, ChangesWithEveryFileThatRowsDependOn) {
  const std::string before = fingerprint("");
  EXPECT_EQ(before, fingerprint(""));
  EXPECT_EQ(before, fingerprint("manifest.json"));
  EXPECT_NE(before, fingerprint("model.safetensors"));
  EXPECT_TRUE(before.ends_with(";dtype=float32;quant=none")) << before;
}

TEST(ModelFingerprint, SaysHowTheTowerComputes) {
  const std::string reduced = fingerprint(
      "", {.quantization = Quantization::kInt8, .dtype_compute = ComputeDType::kBFloat16});
  EXPECT_TRUE(reduced.ends_with(";dtype=bfloat16;quant=int8")) << reduced;
}

TEST_F(ItemKeyTest, OfRowsDependsOnWhatIsMadeOfThem) {
  const std::optional<ItemKey> key = item_key({model_, options_}, image_bytes({1, 2, 3}, "item"));
  ASSERT_TRUE(key);
  const auto rows = [&](Modality modality, RowDType dtype) {
    return rows_key(*key, modality, dtype, options_);
  };
  const std::string image = rows(Modality::kImage, RowDType::kFloat32);
  const std::string video = rows(Modality::kVideo, RowDType::kFloat32);
  EXPECT_NE(image, key->text);
  EXPECT_NE(image, rows(Modality::kImage, RowDType::kBFloat16));
  options_.video_pruning_rate = 0.5;
  EXPECT_EQ(image, rows(Modality::kImage, RowDType::kFloat32));
  EXPECT_NE(video, rows(Modality::kVideo, RowDType::kFloat32));
}

/// Of a video, for which all of them count.
TEST(OptionTable, SaysWhichOptionsChangeTheFingerprintOfAModelAndTheKeysOfItems) {
  const MediaItem video = video_bytes({1, 2, 3}, "video");
  const auto key = [&](const std::string& model, const EngineOptions& options) {
    const std::optional<ItemKey> tower = item_key({model, options}, video);
    return rows_key(*tower, video.modality, RowDType::kFloat32, options);
  };
  const EngineOptions base{.dummy_weights = true};  // so that the seed counts
  const std::string model = fingerprint("", base);
  const std::string before = key(model, base);
  test::for_each_change(
      base, [&](const std::string& name, const OptionFacts& facts, const EngineOptions& changed) {
        const std::string changed_model = fingerprint("", changed);
        EXPECT_EQ(changed_model != model, facts.effect == RowEffect::kModel) << name;
        EXPECT_EQ(key(changed_model, changed) != before, facts.effect != RowEffect::kNone) << name;
      });
}

}  // namespace
}  // namespace fovea
