#include "flags/json_text.h"

#include <gtest/gtest.h>
#include "cli/expect_usage_error.h"

namespace fovea::cli {
namespace {

/// More than is read.
std::string large_text() {
  std::string text;
  text.resize(20'000'000, ' ');
  return text;
}

TEST(ParseJson, ReadsJsonAndNothingElse) {
  const std::string json = R"({"a": [1, "b"]})";
  EXPECT_EQ(parse_json(json).value().root().at("a").element(1).as_text(), "b");
  for (const char* text : {"", "{", "{} {}", "\"\xff\""}) {
    EXPECT_FALSE(parse_json(text)) << text;
  }
}

TEST(ParseJson, RefusesWhatIsNestedDeeply) {
  const auto is_read = [](std::size_t levels) {
    return parse_json(std::string(levels, '[') + std::string(levels, ']')).has_value();
  };
  EXPECT_TRUE(is_read(64));
  EXPECT_FALSE(is_read(65));
  EXPECT_FALSE(is_read(1'000'000));  // a walk over these would overflow the stack
}

/// 42 s of CPU for a megabyte, once. The test has no limit of its own; attack.S1.* has.
TEST(ParseJson, TakesLongListsOfObjects) {
  std::string text = "[";
  for (int i = 0; i < 300'000; ++i) text += "{},";
  text += "0]";
  EXPECT_EQ(parse_json(text).value().root().num_elements(), 300'001u);
}

TEST(ParseJson, RefusesALargeText) { EXPECT_FALSE(parse_json(large_text() + "{}")); }

TEST(ParseJsonObject, RefusesWhatIsNone) {
  EXPECT_TRUE(parse_json_object("{}"));
  for (const char* text : {"[]", "1", "null", "{"}) EXPECT_FALSE(parse_json_object(text)) << text;
}

TEST(Shown, IsOneShortLine) {
  const JsonDocument object = JsonDocument::parse(R"({"a" : 1})", "a");
  EXPECT_EQ(shown(object.root()), R"({"a":1})");
  EXPECT_EQ(shown(std::string("two\nlines")), "two lines");
  EXPECT_EQ(shown(std::string(1000, 'x')).size(), 60u);
}

TEST(ShownJson, SaysFromWhereOnATextIsNoJson) {
  EXPECT_EQ(shown_json("[1, 2]"), "[1, 2]");
  EXPECT_EQ(shown_json("{a: 1}"), "{a: 1} (line 1, column 2: syntax error: expected a key)");
  EXPECT_EQ(shown_json(R"({"a": 1,})"),
            R"({"a": 1,} (line 1, column 9: syntax error: expected a key))");
  EXPECT_EQ(shown_json(R"({"a": 1}})"),
            R"({"a": 1}} (line 1, column 9: syntax error: expected the end of the text))");
  EXPECT_EQ(shown_json(R"({"a": 1)"),
            R"({"a": 1 (line 1, column 8: syntax error: expected ',' or '}', but the text ends))");
  EXPECT_EQ(shown_json(""), "an empty text");
  EXPECT_EQ(shown_json(large_text()), "19.1 MiB");
}

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
