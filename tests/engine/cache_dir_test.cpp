// What a GPU was measured to do outlives the engine. Skipped where there is no GPU.
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

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

}  // namespace
}  // namespace fovea
