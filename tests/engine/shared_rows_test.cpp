// Engines that share rows: what one has encoded the other does not, and their rows are the same.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "engine/cached/noise.h"
#include "fovea/fovea.h"
#include "support/expect_error.h"
#include "support/golden.h"
#include "support/temporary_directory.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;
using test::expect_error;

class SharedRowsOfEnginesTest : public testing::Test {
 protected:
  EngineOptions options() const {
    EngineOptions options;
    options.device = "cpu";
    options.num_threads = 2;
    options.encoder_cache_bytes = std::int64_t{64} << 20;
    options.shared_rows = folder / "";
    return options;
  }
  static Engine load(const EngineOptions& options) {
    return Engine::load(test::golden_folder("qwen3_vl", "golden.safetensors"), options);
  }
  static MediaItem image() {
    return image_file(
        (fs::path(FOVEA_TEST_GOLDEN_DIR) / "qwen3_vl/images/photo_180x180.jpg").string());
  }
  static std::vector<MediaItem> images() {
    std::vector<MediaItem> images{image()};
    for (unsigned seed = 0; seed < 3; ++seed) {
      images.push_back(test::noise(56 + 28 * std::int64_t{seed}, 84, seed));
    }
    return images;
  }
  static SharedRowsStats stats(const Engine& engine) {
    return engine.stats().encoder_cache.shared.value();
  }
  static std::int64_t encoded(const Engine& engine) {
    const Stats all = engine.stats();
    return all.graph_hits + all.graph_partial + all.graph_misses;
  }
  /// Until so many items have been stored, or not.
  static void wait_for_writes(const Engine& engine, std::int64_t items) {
    while (stats(engine).stored + stats(engine).not_stored < items) std::this_thread::yield();
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(std::string(folder / ""))) {
      if (entry.is_regular_file() && entry.path().filename() != ".lock") {
        files.push_back(entry.path());
      }
    }
    return files;
  }

  test::TemporaryDirectory folder;
};

TEST_F(SharedRowsOfEnginesTest, AreEncodedOnce) {
  Engine first = load(options());
  const std::vector<Embedding> rows = first.encode(images());
  wait_for_writes(first, 4);
  EXPECT_EQ(stats(first).stored, 4);
  EXPECT_EQ(stats(first).misses, 4);

  Engine second = load(options());
  const std::vector<Embedding> same = second.encode(images());
  EXPECT_EQ(encoded(second), 0);
  EXPECT_EQ(stats(second).hits, 4);
  ASSERT_EQ(same.size(), rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(same[i].data, rows[i].data) << i;
    EXPECT_EQ(same[i].grid_thw, rows[i].grid_thw);
    EXPECT_EQ(same[i].name, rows[i].name);
    EXPECT_EQ(same[i].key, rows[i].key);
    EXPECT_EQ(same[i].source_width_px, rows[i].source_width_px);
    EXPECT_EQ(same[i].cache, CacheUse::kHit);
  }
  (void)second.encode(images());
  EXPECT_EQ(stats(second).hits, 4) << "its own cache has them now";
  EXPECT_EQ(stats(second).stored + stats(second).not_stored, 0) << "they are there";
}

TEST_F(SharedRowsOfEnginesTest, AreFoundInFrontOfDeviceMemory) {
  Engine first = load(options());
  const std::vector<Embedding> rows = first.encode(images());
  wait_for_writes(first, 4);
  EngineOptions on_device = options();
  on_device.encoder_cache_bytes = 0;
  on_device.encoder_device_cache_size = std::int64_t{64} << 20;
  Engine second = load(on_device);
  const std::vector<Embedding> same = second.encode(images());
  EXPECT_EQ(encoded(second), 0);
  for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(same[i].data, rows[i].data) << i;
}

TEST_F(SharedRowsOfEnginesTest, MeetThoseThatAreNotThere) {
  Engine first = load(options());
  (void)first.encode(std::vector{images()[1]});
  wait_for_writes(first, 1);
  Engine second = load(options());
  const std::vector<Embedding> some = second.encode(images());
  EXPECT_EQ(encoded(second), 3);
  EngineOptions alone = options();
  alone.shared_rows.clear();
  Engine third = load(alone);
  const std::vector<Embedding> expected = third.encode(images());
  for (std::size_t i = 0; i < some.size(); ++i) EXPECT_EQ(some[i].data, expected[i].data) << i;
  EXPECT_FALSE(third.stats().encoder_cache.shared);
}

TEST_F(SharedRowsOfEnginesTest, AreThoseOfTheSameOptionsAlone) {
  Engine first = load(options());
  (void)first.encode(std::vector{image()});
  wait_for_writes(first, 1);
  EngineOptions smaller = options();
  smaller.media.max_pixels = 64 * 64;
  Engine second = load(smaller);
  (void)second.encode(std::vector{image()});
  EXPECT_EQ(encoded(second), 1);
}

TEST_F(SharedRowsOfEnginesTest, AreEncodedAnewWhereAFileIsSpoilt) {
  Engine first = load(options());
  const std::vector<Embedding> rows = first.encode(std::vector{image()});
  wait_for_writes(first, 1);
  ASSERT_EQ(files().size(), 1U);
  fs::resize_file(files()[0], fs::file_size(files()[0]) - 1);
  Engine second = load(options());
  EXPECT_EQ(second.encode(std::vector{image()}).at(0).data, rows[0].data);
  EXPECT_EQ(encoded(second), 1);
  wait_for_writes(second, 1);
  Engine third = load(options());
  EXPECT_EQ(third.encode(std::vector{image()}).at(0).data, rows[0].data);
  EXPECT_EQ(encoded(third), 0) << "it is whole again";
}

TEST_F(SharedRowsOfEnginesTest, AreEncodedWhereTheCacheHasNoRoomForThem) {
  Engine first = load(options());
  const std::vector<Embedding> rows = first.encode(images());
  wait_for_writes(first, 4);
  EngineOptions small = options();
  small.encoder_cache_bytes = 1;
  Engine second = load(small);
  const std::vector<Embedding> same = second.encode(images());
  EXPECT_EQ(encoded(second), 4);
  for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(same[i].data, rows[i].data) << i;
}

TEST_F(SharedRowsOfEnginesTest, DoWithoutAFolderThatWent) {
  auto gone = std::make_unique<test::TemporaryDirectory>();
  EngineOptions with = options();
  with.shared_rows = *gone / "";
  Engine engine = load(with);
  gone.reset();
  EXPECT_FALSE(engine.encode(std::vector{image()}).at(0).error);
}

TEST_F(SharedRowsOfEnginesTest, NeedACacheAndAPlace) {
  EngineOptions no_cache = options();
  no_cache.encoder_cache_bytes = 0;
  expect_error(ErrorCode::kInvalidArgument, "there is none (encoder_cache_bytes",
               [&] { (void)load(no_cache); });
  EngineOptions no_folder = options();
  no_folder.shared_rows = folder / "none";
  expect_error(ErrorCode::kNotFound, "no such folder", [&] { (void)load(no_folder); });
}

}  // namespace
}  // namespace fovea
