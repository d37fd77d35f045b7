#include "flags/token_budgets.h"

#include <gtest/gtest.h>

#include "cli/expect_usage_error.h"

namespace fovea::cli {
namespace {

using test::expect_usage_error;

GraphOptions graphs_of(const std::string& text) {
  GraphOptions graphs{.encoder_cudagraph_token_budgets = {1},
                      .encoder_cudagraph_path_token_budgets = {{"page", {2}}}};
  read_token_budgets(text, "--token-budgets", graphs);
  return graphs;
}

TEST(TokenBudgets, AreAListForAllPaths) {
  for (const char* text : {"64,256", "[64, 256]"}) {
    const GraphOptions graphs = graphs_of(text);
    EXPECT_EQ(graphs.encoder_cudagraph_token_budgets, (std::vector<std::int64_t>{64, 256}));
    EXPECT_TRUE(graphs.encoder_cudagraph_path_token_budgets.empty());
  }
}

TEST(TokenBudgets, MayBeGivenByPath) {
  const GraphOptions graphs = graphs_of(R"({"global": [272, 544], "local": [100]})");
  EXPECT_TRUE(graphs.encoder_cudagraph_token_budgets.empty());
  EXPECT_EQ(
      graphs.encoder_cudagraph_path_token_budgets,
      (std::map<std::string, std::vector<std::int64_t>>{{"global", {272, 544}}, {"local", {100}}}));
}

TEST(TokenBudgets, HaveAMaximum) {
  EXPECT_EQ(graphs_of("[16777216]").encoder_cudagraph_token_budgets,
            std::vector<std::int64_t>{kMaxTokenBudget});
  for (const char* budget :
       {"16777217", "9223372036854775807", "9223372036854775808", "18446744073709551615"}) {
    expect_usage_error(
        "--token-budgets: expected a whole number from 1 to 16777216, got " + std::string(budget),
        [&] { (void)graphs_of("[" + std::string(budget) + "]"); });
  }
}

TEST(TokenBudgets, OfOtherFormsAreRefused) {
  const std::pair<const char*, const char*> cases[] = {
      {"[0]", "--token-budgets: expected a whole number from 1 to 16777216, got 0"},
      {"[1.5]", "--token-budgets: expected a whole number from 1 to 16777216, got 1.5"},
      {"[64", "--token-budgets: expected a JSON list, got [64"},
      {"{local", "--token-budgets: expected a JSON object, got {local"},
      {R"({"local": [0]})",
       "--token-budgets: local: expected a whole number from 1 to 16777216, got 0"},
      {R"({"local": 100})", "--token-budgets: local: expected a list, got 100"},
      {"64,0", "--token-budgets: expected a whole number from 1 to 16777216, got \"0\""},
      {"", "--token-budgets: expected a whole number from 1 to 16777216, got \"\""}};
  for (const auto& [text, complaint] : cases) {
    expect_usage_error(complaint, [text = text] { (void)graphs_of(text); });
  }
}

}  // namespace
}  // namespace fovea::cli
