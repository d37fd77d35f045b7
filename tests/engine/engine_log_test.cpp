// The line about an engine that has been loaded.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "fovea/fovea.h"
#include "graph/recording_log.h"
#include "support/golden.h"

namespace fovea {
namespace {

std::string model_dir(const char* family) {
  return test::golden_folder(family, "golden.safetensors");
}

/// What is logged about the loaded engine, from its devices on.
std::string initialized(const std::string& model, EngineOptions options) {
  test::RecordingLog log;
  options.device = "cpu";
  options.log = &log;
  (void)Engine::load(model, options);
  EXPECT_EQ(log.count("engine.initialized"), 1);
  for (const auto& [level, line] : log.lines) {
    if (!line.starts_with("engine.initialized model=\"" + model + "\" architecture=")) continue;
    EXPECT_EQ(level, LogLevel::kInfo);
    return line.substr(line.find("devices="));
  }
  return "";
}

EngineOptions with_budgets(std::vector<std::int64_t> budgets, std::int64_t items) {
  EngineOptions options;
  options.graphs.encoder_cudagraph_token_budgets = std::move(budgets);
  options.graphs.encoder_cudagraph_max_vision_items_per_batch = items;
  options.graphs.encoder_cudagraph_max_frames_per_batch = 16;
  return options;
}

TEST(EngineLog, TellsTheSizesOfTheGraphs) {
  EXPECT_EQ(initialized(model_dir("qwen3_vl"), with_budgets({1024, 64, 512}, 8)),
            "devices=cpu replicas=1 graphs=3 max_items=8 max_frames=16 packing=greedy "
            "budgets.default=64,512,1024");
}

TEST(EngineLog, TellsTheDeviceOfEveryReplica) {
  EngineOptions options = with_budgets({64}, 8);
  options.data_parallel_size = 2;
  options.packing = PackingPolicy::kCost;
  EXPECT_EQ(initialized(model_dir("qwen3_vl"), options),
            "devices=cpu,cpu replicas=2 graphs=1 max_items=8 max_frames=16 packing=cost "
            "budgets.default=64");
}

/// Lines about sub-batches, from the end of their device on, sorted: replicas run side by side.
std::vector<std::string> replays(int replicas) {
  test::RecordingLog log;
  EngineOptions options = with_budgets({64}, 1);
  options.device = "cpu";
  options.data_parallel_size = replicas;
  options.log = &log;
  Engine engine = Engine::load(model_dir("qwen3_vl"), options);
  const std::string image = model_dir("qwen3_vl") + "/images/photo_180x180.jpg";
  (void)engine.encode(std::vector{image_file(image), image_file(image)});
  std::vector<std::string> lines;
  for (const auto& [level, line] : log.lines) {
    if (line.starts_with("encoder_graphs.replay ")) lines.push_back(line);
  }
  std::ranges::sort(lines);
  return lines;
}

TEST(EngineLog, TellsWhichOfSeveralReplicasRanASubBatch) {
  const std::string load = "path=default items=1 tokens=36 budget=64 waste=28 waste_percent=43.8";
  EXPECT_THAT(
      replays(2),
      testing::ElementsAre("encoder_graphs.replay device=cpu sub_batch=1 " + load + " replica=0",
                           "encoder_graphs.replay device=cpu sub_batch=1 " + load + " replica=1"));
  EXPECT_THAT(replays(1),
              testing::ElementsAre("encoder_graphs.replay device=cpu sub_batch=1 " + load,
                                   "encoder_graphs.replay device=cpu sub_batch=2 " + load));
}

TEST(EngineLog, TellsTheBudgetsOfEveryPath) {
  EXPECT_EQ(initialized(model_dir("deepseek_ocr"), with_budgets({600}, 2)),
            "devices=cpu replicas=1 graphs=6 max_items=2 max_frames=16 packing=greedy "
            "budgets.global=272,544 budgets.local=100,200,400,600");
}

TEST(EngineLog, TellsThatThereAreNoGraphs) {
  EngineOptions options;
  options.graphs.cudagraph_mm_encoder = false;
  EXPECT_EQ(initialized(model_dir("qwen3_vl"), options), "devices=cpu replicas=1 graphs=off");
}

}  // namespace
}  // namespace fovea
