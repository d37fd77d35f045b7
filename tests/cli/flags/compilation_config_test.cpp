#include "flags/compilation_config.h"

#include <gtest/gtest.h>

#include "cli/expect_usage_error.h"
#include "errors.h"

namespace fovea::cli {
namespace {

using test::expect_usage_error;

GraphOptions graphs_of(const std::string& json) {
  Console console;
  GraphOptions graphs;
  apply_compilation_config(json, graphs, console);
  return graphs;
}

TEST(CompilationConfig, ReadsTheFieldsOfTheReference) {
  const GraphOptions graphs = graphs_of(R"({
      "cudagraph_mm_encoder": false,
      "encoder_cudagraph_token_budgets": [64, 256],
      "encoder_cudagraph_max_vision_items_per_batch": 8,
      "encoder_cudagraph_max_frames_per_batch": 0})");
  EXPECT_FALSE(graphs.cudagraph_mm_encoder);
  EXPECT_EQ(graphs.encoder_cudagraph_token_budgets, (std::vector<std::int64_t>{64, 256}));
  EXPECT_EQ(graphs.encoder_cudagraph_max_vision_items_per_batch, 8);
  EXPECT_EQ(graphs.encoder_cudagraph_max_frames_per_batch, 0);
}

TEST(CompilationConfig, AcceptsTheOldNameOfTheItemLimit) {
  EXPECT_EQ(graphs_of(R"({"encoder_cudagraph_max_images_per_batch": 3})")
                .encoder_cudagraph_max_vision_items_per_batch,
            3);
}

TEST(CompilationConfig, NullIsTheDefault) {
  EXPECT_EQ(graphs_of(R"({"encoder_cudagraph_max_frames_per_batch": null})")
                .encoder_cudagraph_max_frames_per_batch,
            std::nullopt);
}

TEST(CompilationConfig, WarnsAboutOtherKeys) {
  ::testing::internal::CaptureStderr();
  (void)graphs_of(R"({"level": 3})");
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "fovea: warning: --compilation-config: key \"level\" is ignored\n");
}

TEST(CompilationConfig, RefusesBudgetsThatTheDeviceCannotCount) {
  EXPECT_EQ(graphs_of(R"({"encoder_cudagraph_token_budgets": [16777216]})")
                .encoder_cudagraph_token_budgets,
            (std::vector<std::int64_t>{16'777'216}));
  for (const char* budget :
       {"16777217", "9223372036854775807", "9223372036854775808", "18446744073709551615"}) {
    expect_usage_error(
        "encoder_cudagraph_token_budgets: expected a whole number from 1 to 16777216, got " +
            std::string(budget),
        [&] {
          (void)graphs_of("{\"encoder_cudagraph_token_budgets\": [" + std::string(budget) + "]}");
        });
  }
}

TEST(CompilationConfig, RefusesWrongTypesAndTexts) {
  for (const char* json :
       {"", "{", "[1]", "3", R"({"cudagraph_mm_encoder": 1})",
        R"({"encoder_cudagraph_token_budgets": 64})", R"({"encoder_cudagraph_token_budgets": [0]})",
        R"({"encoder_cudagraph_token_budgets": [1.5]})",
        R"({"encoder_cudagraph_max_vision_items_per_batch": "8"})",
        R"({"encoder_cudagraph_max_frames_per_batch": -1})"}) {
    expect_usage_error("--compilation-config: ", [&] { (void)graphs_of(json); });
  }
}

TEST(CompilationConfig, ComplaintsQuoteTheEndsOfALongText) {
  const std::string name(100'000, 'x');
  for (const std::string& json :
       {"[\"" + name + "\"]", "{\"cudagraph_mm_encoder\": \"" + name + "\"}"}) {
    try {
      (void)graphs_of(json);
      ADD_FAILURE() << "expected a complaint";
    } catch (const UsageError& error) {
      EXPECT_LT(std::string_view(error.what()).size(), 200u);
    }
  }
}

TEST(CompilationConfig, BudgetsMayBeGivenByPath) {
  const GraphOptions graphs =
      graphs_of(R"({"encoder_cudagraph_token_budgets": {"global": [272, 544], "local": [100]}})");
  EXPECT_TRUE(graphs.encoder_cudagraph_token_budgets.empty());
  EXPECT_EQ(graphs.encoder_cudagraph_path_token_budgets.at("global"),
            (std::vector<std::int64_t>{272, 544}));
  EXPECT_EQ(graphs.encoder_cudagraph_path_token_budgets.at("local"),
            std::vector<std::int64_t>{100});
  expect_usage_error(
      "--compilation-config: encoder_cudagraph_token_budgets: local: expected a list, got 100",
      [] { (void)graphs_of(R"({"encoder_cudagraph_token_budgets": {"local": 100}})"); });
}

}  // namespace
}  // namespace fovea::cli
