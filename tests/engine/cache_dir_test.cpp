// What a GPU was measured to do outlives the engine. Skipped where there is no GPU.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "core/file.h"
#include "device/cuda_plugin.h"
#include "fovea/fovea.h"
#include "support/golden.h"
#include "support/temporary_directory.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

TEST(CacheDirOnAGpu, SparesTheNextEngineItsMeasurements) {
  if (usable_gpus(find_cuda()).empty()) GTEST_SKIP() << "no GPU";
  const test::TemporaryDirectory folder;
  const std::string model = test::golden_folder("qwen3_vl", "golden.safetensors");
  const auto graphs_of_a_start = [&] {
    Engine engine = Engine::load(model, {.device = "cuda", .cache_dir = folder / "cache"});
    engine.warm_up();
    return engine.stats().graphs;
  };
  const std::vector<GraphReport> first = graphs_of_a_start();
  const std::vector<std::string> files = list_directory(folder / "cache");
  ASSERT_EQ(files.size(), 2u);
  EXPECT_TRUE(files[0].starts_with("gemm-")) << files[0];
  EXPECT_TRUE(files[1].starts_with("graph-times-")) << files[1];
  const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(1);
  for (const std::string& file : files) fs::last_write_time(folder / "cache/" + file, long_ago);

  const std::vector<GraphReport> second = graphs_of_a_start();
  ASSERT_EQ(first.size(), second.size());
  ASSERT_FALSE(first.empty());
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_FALSE(first[i].stored_times) << first[i].budget;
    EXPECT_TRUE(second[i].stored_times) << first[i].budget;
    EXPECT_EQ(first[i].replay_ms, second[i].replay_ms);
  }
  for (const std::string& file : files) {  // nothing was measured that would have been written
    EXPECT_EQ(fs::last_write_time(folder / "cache/" + file), long_ago) << file;
  }
}

TEST(CacheDirOnAGpu, RequestsWithoutGraphsMeasureNothing) {
  if (usable_gpus(find_cuda()).empty()) GTEST_SKIP() << "no GPU";
  const test::TemporaryDirectory folder;
  const std::string model = test::golden_folder("qwen3_vl", "golden.safetensors");
  // What is kept when an engine has gone.
  const auto choices_after = [&](std::span<const MediaItem> items) {
    {
      Engine engine = Engine::load(model, {.device = "cuda",
                                           .graphs = {.cudagraph_mm_encoder = false},
                                           .cache_dir = folder / "cache"});
      engine.warm_up();
      for (const MediaItem& item : items) (void)engine.encode({&item, 1});
      if (items.size() > 1) (void)engine.encode(items);
    }
    const std::vector<std::string> files = list_directory(folder / "cache");
    return files.size() == 1 ? test::read_text(folder / "cache/" + files[0]) : "";
  };
  const std::string rehearsed = choices_after({});
  EXPECT_NE(rehearsed, "") << "the rehearsal measures";
  std::vector<MediaItem> images;
  for (const std::string& path : images_in(model + "/images")) images.push_back(image_file(path));
  ASSERT_GT(images.size(), 1u);
  EXPECT_EQ(choices_after(images), rehearsed);
}

}  // namespace
}  // namespace fovea
