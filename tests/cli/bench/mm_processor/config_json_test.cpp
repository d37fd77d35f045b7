// What a report says of its run.
#include "bench/mm_processor/mm_flags.h"

#include <gtest/gtest.h>

#include "support/json.h"

namespace fovea::cli {
namespace {

using fovea::test::Json;
using fovea::test::read_again;

TEST(ConfigJson, HoldsWhatRepeatsARandomRun) {
  MmFlags flags;
  EngineOptions& options = flags.engine.options;
  options.graphs.encoder_cudagraph_token_budgets = {64, 512};
  options.graphs.encoder_cudagraph_max_vision_items_per_batch = 8;
  options.packing = PackingPolicy::kCost;
  options.data_parallel_size = 2;
  options.quantization = Quantization::kInt8;
  flags.sampling.buckets = {{{336, 224, 1}, 1.0}};
  flags.sampling.limits = {.images = 20, .videos = std::nullopt};
  const Json json = read_again(config_json(flags));
  EXPECT_EQ(json["buckets"].dump(), R"([{"height":224,"width":336,"frames":1,"probability":1.0}])");
  EXPECT_EQ(json["items_limits"].dump(), R"({"image":20,"video":null})");
  const Json& engine = json["engine"];
  EXPECT_EQ(engine["encoder_cudagraph_token_budgets"].dump(), "[64,512]");
  EXPECT_EQ(engine["encoder_cudagraph_max_vision_items_per_batch"], 8);
  EXPECT_TRUE(engine["encoder_cudagraph_max_frames_per_batch"].is_null());
  EXPECT_EQ(engine["packing"], "cost");
  EXPECT_EQ(engine["data_parallel_size"], 2);
  EXPECT_EQ(engine["quantization"], "int8");
}

TEST(ConfigJson, NamesTheFileOfRequestsThatAreNotRandom) {
  MmFlags flags;
  flags.dataset_name = "jsonl";
  flags.dataset_path = "requests.jsonl";
  const Json json = read_again(config_json(flags));
  EXPECT_EQ(json["dataset_path"], "requests.jsonl");
  EXPECT_FALSE(json.contains("buckets"));
}

}  // namespace
}  // namespace fovea::cli
