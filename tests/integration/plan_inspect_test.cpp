// fovea plan and fovea inspect on the golden checkpoint.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "integration/run_program.h"
#include "support/golden.h"
#include "support/json.h"
#include "support/temporary_directory.h"

namespace fovea::test {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string golden_model() { return golden_folder("qwen3_vl", "model.safetensors"); }

Json plan_of(const std::string& sizes, std::vector<std::string> flags = {}) {
  std::vector<std::string> arguments{"plan", golden_model(), "--sizes", sizes, "--json"};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  const ProgramResult result = run_fovea(arguments);
  expect_success(result);
  return Json::parse(result.out);
}

TEST(PlanProgram, HasTheOptionsOfItems) {
  const Json plan =
      plan_of("640x480", {"--mm-processor-kwargs", R"({"min_pixels": 1024, "max_pixels": 20000})"});
  EXPECT_EQ(plan["items"][0]["rows"], 15);
}

TEST(PlanProgram, GivesGridsAndRowsOfImagesAndVideos) {
  // Patches of 16 pixels, merged 2 x 2; frames in pairs.
  const Json plan = plan_of("640x480,64x64,100x76x6f");
  ASSERT_EQ(plan["items"].size(), 3U);
  EXPECT_EQ(plan["items"][0]["grid_thw"], Json({1, 30, 40}));
  EXPECT_EQ(plan["items"][0]["patches"], 1200);
  EXPECT_EQ(plan["items"][0]["rows"], 300);
  EXPECT_EQ(plan["items"][1]["rows"], 4);
  EXPECT_EQ(plan["items"][2]["modality"], "video");
  EXPECT_EQ(plan["items"][2]["grid_thw"], Json({3, 10, 12}));
  EXPECT_EQ(plan["items"][2]["rows"], 90);
}

TEST(PlanProgram, PrintsTables) {
  const ProgramResult result =
      run_fovea({"plan", golden_model(), "--sizes", "640x480,4000x4000", "--token-budgets", "512"});
  expect_success(result);
  EXPECT_THAT(result.out, HasSubstr("640x480"));
  EXPECT_THAT(result.out, HasSubstr("1x30x40"));
  EXPECT_THAT(result.out, HasSubstr("58.6 %"));  // 300 of 512
  EXPECT_THAT(result.out, HasSubstr("eager"));   // 15,625 tokens fit no budget
  EXPECT_THAT(result.out, HasSubstr("budgets  default: 512\n"));
}

TEST(PlanProgram, NamesTheMediaProfile) {
  EXPECT_EQ(plan_of("64x64")["media_profile"], "vllm");
  EXPECT_EQ(plan_of("64x64", {"--media-profile", "sglang"})["media_profile"], "sglang");
}

TEST(PlanProgram, BudgetsAndLimitsAreObeyed) {
  const Json plan = plan_of("256x256,256x256,256x256,256x256,256x256",
                            {"--token-budgets", "128,256", "--max-items-per-batch", "2"});
  EXPECT_EQ(plan["token_budgets"]["default"], Json({128, 256}));
  EXPECT_EQ(plan["max_items_per_batch"], 2);
  ASSERT_EQ(plan["batches"].size(), 3U);
  for (const Json& batch : plan["batches"]) {
    EXPECT_LE(batch["items"].size(), 2U);
    EXPECT_GE(batch["budgets"][0].get<int>(), batch["tokens"][0].get<int>());
  }
}

TEST(PlanProgram, ZeroItemsPerBatchAreInferred) {
  const Json inferred = plan_of("256x256,256x256,64x64");
  EXPECT_EQ(plan_of("256x256,256x256,64x64", {"--max-items-per-batch", "0"}), inferred);
}

TEST(PlanProgram, ReplicasShareThePatches) {
  const std::string sizes = "640x480,320x256,64x64,320x256";
  const Json plan = plan_of(sizes, {"--data-parallel-size", "2"});
  EXPECT_EQ(plan["replica_patches"], Json({1200, 656}));
  ASSERT_EQ(plan["batches"].size(), 2U);
  EXPECT_EQ(plan["batches"][0]["replica"], 0);
  EXPECT_EQ(plan["batches"][1]["replica"], 1);
  const ProgramResult result =
      run_fovea({"plan", golden_model(), "--sizes", sizes, "--device", "cuda:1,cuda:0", "--quiet"});
  expect_success(result);  // no device is looked at
  EXPECT_THAT(result.out, HasSubstr("patches  per replica: 1200 656\n"));
}

TEST(PlanProgram, WithoutGraphsEverySubBatchIsEager) {
  const Json plan = plan_of("256x256", {"--enforce-eager"});
  ASSERT_EQ(plan["batches"].size(), 1U);
  EXPECT_TRUE(plan["batches"][0]["budgets"][0].is_null());
}

TEST(PlanProgram, VideosWithoutGraphsAreEagerAndApart) {
  const Json plan = plan_of("64x64x4f,64x64,128x96x4f", {"--max-frames-per-batch", "0"});
  ASSERT_EQ(plan["batches"].size(), 2U);
  EXPECT_EQ(plan["batches"][0]["items"], Json({1}));
  EXPECT_EQ(plan["batches"][0]["budgets"], Json({64}));
  EXPECT_EQ(plan["batches"][1]["items"].size(), 2U);
  EXPECT_TRUE(plan["batches"][1]["budgets"][0].is_null());
}

TEST(PlanProgram, PacksAThousandSizesEachOnce) {
  std::string sizes;
  for (int i = 0; i < 1000; ++i) {
    if (i > 0) sizes += ',';
    sizes.append(std::to_string(64 + i)).append("x").append(std::to_string(1100 - i));
    if (i % 10 == 0) sizes += "x4f";
  }
  const Json plan = plan_of(sizes);
  EXPECT_EQ(plan["items"].size(), 1000U);
  std::set<int> seen;
  for (const Json& batch : plan["batches"]) {
    for (const Json& item : batch["items"]) {
      EXPECT_TRUE(seen.insert(item.get<int>()).second) << item;
    }
  }
  EXPECT_EQ(seen.size(), 1000U);

  const ProgramResult table = run_fovea({"plan", golden_model(), "--sizes", sizes});
  expect_success(table);
  EXPECT_THAT(table.out, HasSubstr("total    1000 items"));
}

TEST(PlanProgram, NeedsNoWeights) {
  const TemporaryDirectory folder;
  for (const char* file :
       {"config.json", "preprocessor_config.json", "video_preprocessor_config.json"}) {
    std::filesystem::copy(golden_model() + "/" + file, folder / file);
  }
  expect_success(run_fovea({"plan", folder.path(), "--sizes", "640x480"}));
}

TEST(PlanProgram, WarnsOnceOfWhatAMissingProcessorFileLeavesOpen) {
  const TemporaryDirectory folder;
  const std::string model = folder / "model";
  std::filesystem::copy(golden_model(), model);
  std::filesystem::remove(model + "/preprocessor_config.json");
  using Arguments = std::vector<std::string>;
  for (const Arguments& arguments :
       {Arguments{"plan", model, "--sizes", "8x8"}, {"inspect", model, "--image", "8x8"}}) {
    const ProgramResult result = run_fovea(arguments);
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_THAT(result.err, StartsWith("fovea: warning: preprocessing.assumed missing="));
    EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
  }
  expect_success(run_fovea({"plan", model, "--sizes", "8x8", "--load-format", "dummy"}));
}

TEST(PlanProgram, RefusesSizesTheModelCannotTake) {
  expect_failure(run_fovea({"plan", golden_model(), "--sizes", "100000x1"}), 1, "100000x1");
}

TEST(PlanProgram, RefusesSizesThatEncodeWouldRefuse) {
  const std::string side = "70000x8: expected sides of at most 65535 pixels, got 70000 x 8";
  expect_failure(run_fovea({"plan", golden_model(), "--sizes", "70000x8"}), 1, side);
  expect_failure(run_fovea({"inspect", golden_model(), "--image", "70000x8"}), 1, side);
  expect_failure(
      run_fovea({"plan", golden_model(), "--sizes", "50x50", "--max-image-pixels", "99"}), 1,
      "50x50: expected at most 99 pixels, got 50 x 50");
}

TEST(PlanProgram, NamesAMissingModel) {
  expect_failure(run_fovea({"plan", "/nonexistent/model", "--sizes", "8x8"}), 1,
                 "/nonexistent/model");
}

TEST(InspectProgram, DescribesTheCheckpoint) {
  const ProgramResult result = run_fovea({"inspect", golden_model(), "--image", "640x480"});
  expect_success(result);
  EXPECT_THAT(result.out, HasSubstr("Qwen3VLForConditionalGeneration"));
  EXPECT_THAT(result.out, HasSubstr("256 = hidden 64 x (1 + 3 deepstack levels)"));
  EXPECT_THAT(result.out, HasSubstr("0 missing or misshapen"));
  EXPECT_THAT(result.out, HasSubstr("grid 1x30x40, 1200 patches, 300 rows"));
}

TEST(InspectProgram, JsonHoldsTensorsMemoryAndPlan) {
  const ProgramResult result = run_fovea({"inspect", golden_model(), "--json"});
  expect_success(result);
  const Json report = Json::parse(result.out);
  EXPECT_EQ(report["architecture"], "Qwen3VLForConditionalGeneration");
  EXPECT_EQ(report["width"], 256);
  EXPECT_EQ(report["deepstack_levels"], 3);
  EXPECT_FALSE(report["tensors"].empty());
  EXPECT_FALSE(report["arenas"].empty());
  EXPECT_TRUE(report["plan"]["token_budgets"].contains("default"));
}

TEST(InspectProgram, MeasuresEveryPathAtItsOwnBudgets) {
  const ProgramResult result =
      run_fovea({"inspect", golden_folder("deepseek_ocr", "model.safetensors"), "--json"});
  expect_success(result);
  const Json report = Json::parse(result.out);
  Json measured = Json::object();
  for (const Json& arena : report["arenas"]) {
    EXPECT_GT(arena["arena_bytes"].get<std::int64_t>(), 0);
    measured[arena["path"].get<std::string>()].push_back(arena["token_budget"]);
  }
  Json planned = report["plan"]["token_budgets"];
  const Json& local = planned["local"];
  planned["local"] = Json(std::vector<Json>(local.begin() + 1, local.end()));  // no tiles: no graph
  EXPECT_EQ(measured, planned);
}

TEST(InspectProgram, ListsMissingTensorsAndFails) {
  const TemporaryDirectory folder;
  const std::string model = folder / "model";
  std::filesystem::copy(golden_model(), model, std::filesystem::copy_options::recursive);
  Json config = Json::parse(read_text(model + "/config.json"));
  config["vision_config"]["depth"] = 5;  // one block more than the file has
  write_text(model + "/config.json", config.dump());
  const ProgramResult result = run_fovea({"inspect", model});
  EXPECT_EQ(result.exit_code, 1);
  EXPECT_EQ(result.err, "fovea: error: " + model + ": 12 of 87 tensors are missing or misshapen\n");
  EXPECT_THAT(result.out, HasSubstr("blocks.4."));
  EXPECT_THAT(result.out, ::testing::Not(HasSubstr("blocks.3.")));
}

}  // namespace
}  // namespace fovea::test
